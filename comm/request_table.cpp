#include "comm/request_table.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.hpp"

namespace hf {

ServerFailure::ServerFailure(std::uint32_t server, std::string_view body)
    : code_(static_cast<int>(ExitCode::transport)) {
  const std::size_t blank = std::min(body.find(' '), body.size());
  std::from_chars(body.data(), body.data() + blank, code_);
  text_ = fmt::format("server {}: {}", server, body.substr(std::min(blank + 1, body.size())));
}

void ServerFailure::raise() const {
  switch (static_cast<ExitCode>(code_)) {
    case ExitCode::config:
      throw ConfigError(text_);
    case ExitCode::data:
      throw DataError(text_);
    case ExitCode::transport:
      throw MpiError(text_);
    case ExitCode::failures:
      throw TooManyFailures(text_);
    default:
      throw Error(static_cast<ExitCode>(code_), text_);
  }
}

void Outcome::raise_first() const {
  for (const auto& error : errors)
    if (error) error->raise();
}

std::uint32_t RequestTable::open(Request request) {
  std::uint32_t tag;
  if (free_.empty()) {
    tag = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    tag = free_.back();
    free_.pop_back();
  }
  ++outstanding_[request.server];
  if (request.outcome) ++request.outcome->waiting;
  entries_[tag] = {true, std::move(request)};
  return tag;
}

RequestTable::Request RequestTable::close(std::uint32_t tag, std::uint32_t server) {
  if (tag >= entries_.size() || !entries_[tag].used || entries_[tag].request.server != server)
    throw MpiError(fmt::format("server {} answers to tag {}, which no request to it has", server, tag));
  Entry entry = std::exchange(entries_[tag], {});
  free_.push_back(tag);
  --outstanding_[server];
  if (entry.request.outcome) --entry.request.outcome->waiting;
  return std::move(entry.request);
}

}  // namespace hf
