// Window backend `shm`: MPI_Win_allocate_shared. All ranks are on one node and peers' pools are plain memory: a put is a
// memcpy, visible with the usual order of memory.
// Threading: see window.hpp.
#pragma once

#include <vector>

#include "comm/window.hpp"
#include "comm/window_handle.hpp"

namespace hf {

class ShmWindow final : public Window {
 public:
  explicit ShmWindow(std::size_t bytes);
  void put(Rank target, std::size_t offset, const void* data, std::size_t bytes) override;
  void flush(Rank target) override;
  std::byte* direct(Rank target) noexcept override { return peers_[static_cast<std::size_t>(target.value)]; }
  void progress() override {}
  Transport transport() const noexcept override { return Transport::shm; }

 private:
  WindowHandle handle_;
  std::vector<std::byte*> peers_;
};

}  // namespace hf
