// What a worker has asked and not yet been told: one entry per request on its way, found by the tag that its answer carries.
// Invariant: a tag belongs to one request at a time; `outstanding` of a server is the number of its open tags.
// Threading: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

struct Pull;

/// An error as a server sent it: "EXIT_CODE text".
class ServerFailure {
 public:
  ServerFailure(std::uint32_t server, std::string_view body);
  /// Throws the exception of that exit code.
  [[noreturn]] void raise() const;

 private:
  int code_;
  std::string text_;
};

/// What the servers answered to a request that is no pull. Shared with the open tags, which may outlive the caller.
struct Outcome {
  explicit Outcome(std::size_t servers) : texts(servers), errors(servers) {}
  /// Throws the first server's error.
  void raise_first() const;

  std::vector<std::string> texts;                    ///< by server
  std::vector<std::optional<ServerFailure>> errors;  ///< by server
  std::uint32_t waiting = 0;                         ///< answers expected
};

class RequestTable {
 public:
  /// One request to one server: of a pull (positions [begin, end) of its order), or with an outcome.
  struct Request {
    std::uint32_t server = 0;
    Pull* pull = nullptr;
    std::uint32_t begin = 0, end = 0;
    std::shared_ptr<Outcome> outcome;
  };

  explicit RequestTable(std::size_t servers) : outstanding_(servers, 0) {}
  /// The tag for a request that is about to be sent.
  std::uint32_t open(Request request);
  /// The request that this answer belongs to; its tag is free again. Throws: MpiError for an answer to no request of this
  /// server.
  Request close(std::uint32_t tag, std::uint32_t server);
  /// Answers expected from a server.
  std::uint32_t outstanding(std::uint32_t server) const noexcept { return outstanding_[server]; }

 private:
  struct Entry {
    bool used = false;
    Request request;
  };
  std::vector<Entry> entries_;  // by tag
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> outstanding_;
};

}  // namespace hf
