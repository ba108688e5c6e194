#include "comm/mpi.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "comm/heartbeat.hpp"
#include "comm/launch.hpp"
#include "comm/liveness.hpp"

namespace hf {

void throw_mpi_error(int code, const char* call, const char* file, int line) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  const std::string reason =
      length > 0 ? std::string(text.data(), static_cast<std::size_t>(length)) : fmt::format("error {}", code);
  throw MpiError(fmt::format("{}: {} ({}:{})", call, reason, file, line));
}

MpiSession::MpiSession() : uncaught_(std::uncaught_exceptions()) {
  int provided = 0, initialized = 0;
  HF_MPI(MPI_Initialized(&initialized));
  started_here_ = !initialized;
  if (started_here_) {
    prepare_mpi_environment();
    HF_MPI(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  } else {
    HF_MPI(MPI_Query_thread(&provided));
  }
  HF_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  HF_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  HF_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  HF_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  if (provided < MPI_THREAD_MULTIPLE)
    throw MpiError(fmt::format("this MPI library gives no MPI_THREAD_MULTIPLE (level {})", provided));
}

MpiSession::~MpiSession() {
  if (!started_here_ || std::uncaught_exceptions() > uncaught_) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (!finalized) MPI_Finalize();
}

Communicator::Communicator(MPI_Comm comm) : comm_(comm), uncaught_(std::uncaught_exceptions()) {
  if (comm_ != MPI_COMM_NULL) HF_MPI(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
}
Communicator Communicator::split(MPI_Comm parent, bool member, int key) {
  MPI_Comm comm = MPI_COMM_NULL;
  HF_MPI(MPI_Comm_split(parent, member ? 0 : MPI_UNDEFINED, key, &comm));
  return Communicator(comm);
}
Communicator Communicator::split_node(MPI_Comm parent) {
  MPI_Comm comm = MPI_COMM_NULL;
  HF_MPI(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
  return Communicator(comm);
}
Communicator Communicator::world() {
  MPI_Comm comm = MPI_COMM_NULL;
  HF_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  return Communicator(comm);
}
Communicator::Communicator(Communicator&& other) noexcept
    : comm_(std::exchange(other.comm_, MPI_COMM_NULL)),
      timeout_seconds_(other.timeout_seconds_),
      liveness_(other.liveness_),
      heartbeat_(other.heartbeat_),
      world_ranks_(std::move(other.world_ranks_)),
      uncaught_(other.uncaught_) {}
Communicator& Communicator::operator=(Communicator&& other) noexcept {
  std::swap(comm_, other.comm_);
  std::swap(timeout_seconds_, other.timeout_seconds_);
  std::swap(liveness_, other.liveness_);
  std::swap(heartbeat_, other.heartbeat_);
  std::swap(world_ranks_, other.world_ranks_);
  std::swap(uncaught_, other.uncaught_);
  return *this;
}
Communicator::~Communicator() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (comm_ != MPI_COMM_NULL && !finalized && std::uncaught_exceptions() <= uncaught_) MPI_Comm_free(&comm_);
}

int Communicator::rank() const {
  int rank = 0;
  HF_MPI(MPI_Comm_rank(comm_, &rank));
  return rank;
}
int Communicator::size() const {
  int size = 0;
  HF_MPI(MPI_Comm_size(comm_, &size));
  return size;
}

void Communicator::watch(const Liveness& liveness, Heartbeat* heartbeat) {
  MPI_Group ours = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  HF_MPI(MPI_Comm_group(comm_, &ours));
  HF_MPI(MPI_Comm_group(MPI_COMM_WORLD, &world));
  std::vector<int> from(static_cast<std::size_t>(size())), to(from.size());
  for (std::size_t r = 0; r < from.size(); ++r) from[r] = static_cast<int>(r);
  HF_MPI(MPI_Group_translate_ranks(ours, size(), from.data(), world, to.data()));
  HF_MPI(MPI_Group_free(&ours));
  HF_MPI(MPI_Group_free(&world));
  world_ranks_.clear();
  for (const int r : to) world_ranks_.emplace_back(r);
  liveness_ = &liveness;
  heartbeat_ = heartbeat;
}

void Communicator::wait(MPI_Request request, const std::string& what) const {
  Patience patience(timeout_seconds_, PeerWatch(liveness_, world_ranks_));
  const std::function<std::string()> text = [&] { return what; };
  // Blocking collectives spin; these waits may last as long as the slowest rank's epoch, so sleep after a
  // while.
  for (std::uint64_t round = 0;; ++round) {
    int done = 0;
    HF_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return;
    if (round < 200) continue;
    if (round < 400) {
      std::this_thread::yield();
      continue;
    }
    if (heartbeat_) heartbeat_->beat();
    patience.check(text);
    std::this_thread::sleep_for(std::chrono::microseconds(round < 1000 ? 50 : 500));
  }
}

void Communicator::barrier(const std::string& what) const {
  MPI_Request request = MPI_REQUEST_NULL;
  HF_MPI(MPI_Ibarrier(comm_, &request));
  wait(request, what);
}
void Communicator::all_reduce_sum(double* values, std::size_t count, const std::string& what) const {
  MPI_Request request = MPI_REQUEST_NULL;
  HF_MPI(MPI_Iallreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_DOUBLE, MPI_SUM, comm_, &request));
  wait(request, what);
}
void Communicator::all_reduce_max(double* values, std::size_t count, const std::string& what) const {
  MPI_Request request = MPI_REQUEST_NULL;
  HF_MPI(MPI_Iallreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_DOUBLE, MPI_MAX, comm_, &request));
  wait(request, what);
}

std::vector<std::string> Communicator::all_gather(const std::string& text, const std::string& what) const {
  const auto ranks = static_cast<std::size_t>(size());
  int length = static_cast<int>(text.size());
  std::vector<int> lengths(ranks), offsets(ranks);
  MPI_Request request = MPI_REQUEST_NULL;
  HF_MPI(MPI_Iallgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_, &request));
  wait(request, what);
  int total = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    offsets[r] = total;
    total += lengths[r];
  }
  std::string all(static_cast<std::size_t>(total), '\0');
  HF_MPI(MPI_Iallgatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(), MPI_CHAR,
                         comm_, &request));
  wait(request, what);
  std::vector<std::string> parts;
  for (std::size_t r = 0; r < ranks; ++r)
    parts.push_back(all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(lengths[r])));
  return parts;
}

std::vector<std::vector<std::byte>> Communicator::gather(const std::vector<std::byte>& bytes,
                                                         const std::string& what) const {
  // Point to point, in pieces: the parts may exceed an int's range together (scores of an evaluation).
  constexpr std::size_t kPiece = 1u << 28;
  constexpr int kTag = 77;
  const auto ranks = static_cast<std::size_t>(size());
  MPI_Request request = MPI_REQUEST_NULL;
  std::vector<std::vector<std::byte>> parts;
  const auto pieces = [&](std::size_t total, auto&& one) {
    for (std::size_t at = 0; at < total; at += kPiece)
      one(at, static_cast<int>(std::min(kPiece, total - at)));
  };
  if (rank() != 0) {
    unsigned long long length = bytes.size();
    HF_MPI(MPI_Isend(&length, 1, MPI_UNSIGNED_LONG_LONG, 0, kTag, comm_, &request));
    wait(request, what);
    pieces(bytes.size(), [&](std::size_t at, int n) {
      HF_MPI(MPI_Isend(bytes.data() + at, n, MPI_BYTE, 0, kTag, comm_, &request));
      wait(request, what);
    });
    return parts;
  }
  parts.resize(ranks);
  parts[0] = bytes;
  for (std::size_t r = 1; r < ranks; ++r) {
    unsigned long long length = 0;
    HF_MPI(MPI_Irecv(&length, 1, MPI_UNSIGNED_LONG_LONG, static_cast<int>(r), kTag, comm_, &request));
    wait(request, what);
    parts[r].resize(length);
    pieces(parts[r].size(), [&](std::size_t at, int n) {
      HF_MPI(MPI_Irecv(parts[r].data() + at, n, MPI_BYTE, static_cast<int>(r), kTag, comm_, &request));
      wait(request, what);
    });
  }
  return parts;
}

std::string mpi_library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  std::string version(text.data(), static_cast<std::size_t>(length));
  const std::size_t comma = version.find(',');
  return comma == std::string::npos ? version : version.substr(0, comma);
}

std::string host_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> text{};
  int length = 0;
  HF_MPI(MPI_Get_processor_name(text.data(), &length));
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace hf
