// Checked MPI: every call's return code becomes an MpiError with MPI's own text, handles are move-only, and every
// wait has a deadline and says what it waits for.
// Threading: MPI is initialised with MPI_THREAD_MULTIPLE.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/types.hpp"

namespace hf {

class Heartbeat;
class Liveness;

[[noreturn]] void throw_mpi_error(int code, const char* call, const char* file, int line);

#define HF_MPI(call)                                                             \
  do {                                                                           \
    if (const int hf_mpi_code = (call); hf_mpi_code != MPI_SUCCESS) [[unlikely]] \
      ::hf::throw_mpi_error(hf_mpi_code, #call, __FILE__, __LINE__);             \
  } while (false)

/// MPI_Init_thread … MPI_Finalize (neither where the program itself started MPI), with the settings of comm/launch.hpp.
/// Sets MPI_ERRORS_RETURN on WORLD and SELF. One per process.
class MpiSession {
 public:
  /// Throws: MpiError when MPI cannot give MPI_THREAD_MULTIPLE.
  MpiSession();
  ~MpiSession();  ///< finalises, unless an exception is unwinding (collective calls would hang) or already done
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

 private:
  int rank_ = 0, size_ = 1;
  int uncaught_;
  bool started_here_ = false;
};

/// A communicator of our own (duplicated or split), freed unless an exception is unwinding.
/// Collective: construction, destruction, and all member functions but rank() and size().
class Communicator {
 public:
  Communicator() = default;
  /// Splits `parent`; the result is null (bool false) where `member` is false.
  static Communicator split(MPI_Comm parent, bool member, int key);
  static Communicator split_node(MPI_Comm parent);
  static Communicator world();  ///< a duplicate of MPI_COMM_WORLD
  Communicator split(bool member, int key) const { return split(comm_, member, key); }
  Communicator(Communicator&& other) noexcept;
  Communicator& operator=(Communicator&& other) noexcept;
  ~Communicator();

  explicit operator bool() const noexcept { return comm_ != MPI_COMM_NULL; }
  MPI_Comm get() const noexcept { return comm_; }
  int rank() const;
  int size() const;

  /// Longest wait of the calls below; then MpiError "… waited N s for WHAT".
  void set_timeout(double seconds) noexcept { timeout_seconds_ = seconds; }
  /// From now on a wait lasts as long as the other ranks of the communicator live (comm/liveness.hpp). `heartbeat` (may be
  /// nullptr) is given by the waiting thread. Both must live until unwatch() or the end. Not collective.
  void watch(const Liveness& liveness, Heartbeat* heartbeat);
  void unwatch() noexcept { liveness_ = nullptr, heartbeat_ = nullptr; }
  void barrier(const std::string& what) const;
  void all_reduce_sum(double* values, std::size_t count, const std::string& what) const;
  void all_reduce_max(double* values, std::size_t count, const std::string& what) const;
  /// Everybody's text, by rank.
  std::vector<std::string> all_gather(const std::string& text, const std::string& what) const;
  /// Everybody's bytes on rank 0, by rank; empty elsewhere.
  std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& bytes,
                                             const std::string& what) const;

 private:
  explicit Communicator(MPI_Comm comm);
  void wait(MPI_Request request, const std::string& what) const;
  MPI_Comm comm_ = MPI_COMM_NULL;
  double timeout_seconds_ = 1800.0;
  const Liveness* liveness_ = nullptr;
  Heartbeat* heartbeat_ = nullptr;
  std::vector<Rank> world_ranks_;  // of the members; filled by watch()
  int uncaught_ = 0;
};

/// "Open MPI v5.0.7, …" and the host's name.
std::string mpi_library_version();
std::string host_name();

}  // namespace hf
