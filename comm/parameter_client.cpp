#include "comm/parameter_client.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "codec/message.hpp"
#include "core/error.hpp"

namespace hf {

struct ParameterClient::TableState {
  TableSpec spec;
  RowHash hash;
  std::vector<std::uint32_t> server_of_shard;
};

/// The body of an error message: "EXIT_CODE text".
struct ServerFailure {
  ServerFailure(std::uint32_t server, std::string_view body) {
    const std::size_t blank = body.find(' ');
    std::from_chars(body.data(), body.data() + std::min(blank, body.size()), code);
    text = "server " + std::to_string(server) + ": " +
           std::string(body.substr(std::min(blank + 1, body.size())));
  }
  [[noreturn]] void raise() const {
    switch (static_cast<ExitCode>(code)) {
      case ExitCode::config:
        throw ConfigError(text);
      case ExitCode::data:
        throw DataError(text);
      case ExitCode::transport:
        throw MpiError(text);
      case ExitCode::failures:
        throw TooManyFailures(text);
      default:
        throw Error(static_cast<ExitCode>(code), text);
    }
  }
  int code = static_cast<int>(ExitCode::transport);
  std::string text;
};

/// What the servers answered to a request that is no pull. Shared with the open tags, which may outlive the
/// caller.
struct ParameterClient::Outcome {
  explicit Outcome(std::size_t servers) : texts(servers), errors(servers) {}
  std::vector<std::string> texts;                    // by server
  std::vector<std::optional<ServerFailure>> errors;  // by server
  std::uint32_t waiting = 0;                         // answers expected
};

/// A pull on its way. Buffers are reused from pull to pull.
struct ParameterClient::Pull {
  TableId table;
  float* out = nullptr;
  std::uint32_t dim = 0;
  Step step = 0;
  std::uint8_t flags = 0;
  bool open = false;
  bool abandoned = false;
  std::vector<RowId> ids;                // grouped by server
  std::vector<std::uint32_t> positions;  // where each goes in `out`; empty: in order (one server)
  std::vector<std::uint32_t> next, end;  // by server: ids not yet asked for
  std::uint32_t remaining = 0;           // rows not yet here
  std::optional<ServerFailure> error;
};

namespace {

std::vector<ServerId> all_servers(std::size_t n) {
  std::vector<ServerId> servers;
  for (std::uint32_t s = 0; s < n; ++s) servers.emplace_back(s);
  return servers;
}

Bell* local_bell(Window& window) {
  if (window.transport() != Transport::shm) return nullptr;
  return reinterpret_cast<Bell*>(window.local().data() + PoolLayout::worker_bell_offset());
}

}  // namespace

ParameterClient::ParameterClient(Window& window, const PoolLayout& layout, const RoleMap& roles, WorkerId me,
                                 std::uint32_t num_shards, double timeout_seconds)
    : window_(window),
      me_(me),
      routing_(all_servers(roles.server_ranks.size()), num_shards),
      idle_(window, local_bell(window), timeout_seconds) {
  for (std::uint32_t s = 0; s < roles.server_ranks.size(); ++s) {
    const Ring reply = layout.reply_ring(ServerId{s}, me);
    peers_.push_back({.requests = RingSender(window, layout.request_ring(me, ServerId{s}),
                                             PoolLayout::server_bell_offset()),
                      .replies = RingReceiver(window, reply, PoolLayout::server_bell_offset()),
                      .reply_slots = reply.slots,
                      .reply_body = max_body(reply.slot_bytes)});
  }
}

ParameterClient::~ParameterClient() = default;

std::uint32_t ParameterClient::num_servers() const noexcept {
  return static_cast<std::uint32_t>(peers_.size());
}
const TableSpec& ParameterClient::table(TableId id) const { return tables_[id.value]->spec; }

std::uint32_t ParameterClient::widest_row_floats() const noexcept {
  std::size_t body = SIZE_MAX;
  for (const Peer& p : peers_) body = std::min({body, p.reply_body, p.requests.max_body_bytes()});
  return static_cast<std::uint32_t>((body - sizeof(RowId)) / sizeof(float));
}

std::vector<TableSpec> ParameterClient::tables() const {
  std::vector<TableSpec> specs;
  for (const auto& t : tables_) specs.push_back(t->spec);
  return specs;
}

template <class Poll>
void ParameterClient::wait(Poll&& poll, const std::string& what) {
  if (poll()) return;
  const auto start = std::chrono::steady_clock::now();
  idle_.wait(
      [&] {
        if (pump()) idle_.busy();
        return poll();
      },
      [&] { return what; });
  counters_.wait_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void ParameterClient::wait_for_slot(std::uint32_t server) {
  wait([&] { return peers_[server].requests.can_send(); },
       "a free request slot of server " + std::to_string(server) + " (its service loop does not read)");
}

void ParameterClient::wait_for_answer_room(std::uint32_t server, const char* what) {
  wait([&] { return peers_[server].outstanding < peers_[server].limit(); },
       "room for the answer of server " + std::to_string(server) + " to " + what);
}

/// Waits for every server's answer before it raises the first error: none arrives later, in the middle of
/// something else.
void ParameterClient::wait_for_answers(Outcome& outcome, const std::string& what) {
  wait([&] { return outcome.waiting == 0; }, what);
  for (const auto& error : outcome.errors)
    if (error) error->raise();
}

std::uint32_t ParameterClient::new_tag(Pending pending) {
  std::uint32_t tag;
  if (free_tags_.empty()) {
    tag = static_cast<std::uint32_t>(pending_.size());
    pending_.emplace_back();
  } else {
    tag = free_tags_.back();
    free_tags_.pop_back();
  }
  ++peers_[pending.server].outstanding;
  if (pending.outcome) ++pending.outcome->waiting;
  pending_[tag] = std::move(pending);
  pending_[tag].used = true;
  return tag;
}

bool ParameterClient::receive(std::uint32_t server) {
  Peer& peer = peers_[server];
  const auto message = peer.replies.poll();
  if (!message) return false;
  const MessageHeader& h = message->header;
  HF_CHECK(h.tag < pending_.size() && pending_[h.tag].used, "an answer to no request");
  const Pending p = std::exchange(pending_[h.tag], {});
  free_tags_.push_back(h.tag);
  --peer.outstanding;
  const std::string_view text(reinterpret_cast<const char*>(message->body.data()), message->body.size());
  if (p.is_pull) {
    Pull& pull = *pulls_[p.pull];
    const std::uint32_t rows = p.end - p.begin;
    if (h.kind == MessageKind::error) {
      pull.error = ServerFailure(server, text);
    } else {
      const std::size_t row_bytes = std::size_t{pull.dim} * sizeof(float);
      HF_CHECK(message->body.size() == rows * row_bytes, "an answer of the wrong size");
      counters_.rows_pulled += rows;
      const std::byte* from = message->body.data();
      if (pull.abandoned) {
        // The buffer may be gone.
      } else if (pull.positions.empty()) {
        std::memcpy(pull.out + std::size_t{p.begin} * pull.dim, from, message->body.size());
      } else {
        for (std::uint32_t i = p.begin; i < p.end; ++i, from += row_bytes)
          std::memcpy(pull.out + std::size_t{pull.positions[i]} * pull.dim, from, row_bytes);
      }
    }
    pull.remaining -= rows;
    counters_.bytes_pulled += message_bytes(h.body_bytes);
  } else {
    --p.outcome->waiting;
    if (h.kind == MessageKind::error) {
      p.outcome->errors[server] = ServerFailure(server, text);
    } else {
      p.outcome->texts[server] = std::string(text);
    }
  }
  peer.replies.release();
  return true;
}

bool ParameterClient::pump() {
  bool any = false;
  for (std::uint32_t s = 0; s < peers_.size(); ++s)
    while (receive(s)) any = true;
  return send_held_back() || any;
}

/// Groups positions of `ids` by server: order_ and begin_of_. Stable.
void ParameterClient::deal(const TableState& table, std::span<const RowId> ids) {
  const std::size_t servers = peers_.size();
  server_of_.resize(ids.size());
  order_.resize(ids.size());
  begin_of_.assign(servers + 1, 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint32_t s = table.server_of_shard[table.hash.shard(ids[i]).value];
    server_of_[i] = s;
    ++begin_of_[s + 1];
  }
  std::partial_sum(begin_of_.begin(), begin_of_.end(), begin_of_.begin());
  std::vector<std::uint32_t>& at = begin_of_;
  for (std::size_t i = 0; i < ids.size(); ++i) order_[at[server_of_[i]]++] = static_cast<std::uint32_t>(i);
  // `at[s]` is now the end of s: shift back to beginnings.
  for (std::size_t s = servers; s > 0; --s) begin_of_[s] = begin_of_[s - 1];
  begin_of_[0] = 0;
}

ParameterClient::Ticket ParameterClient::initiate_pull(TableId table, std::span<const RowId> ids, float* out,
                                                       Step step, std::uint8_t flags) {
  reap_abandoned();
  std::uint32_t index;
  if (free_pulls_.empty()) {
    index = static_cast<std::uint32_t>(pulls_.size());
    pulls_.push_back(std::make_unique<Pull>());
  } else {
    index = free_pulls_.back();
    free_pulls_.pop_back();
  }
  const TableState& state = *tables_[table.value];
  Pull& pull = *pulls_[index];
  pull.table = table;
  pull.out = out;
  pull.abandoned = false;
  pull.dim = state.spec.dim;
  pull.step = step;
  pull.flags = flags;
  pull.open = true;
  pull.error.reset();
  pull.remaining = static_cast<std::uint32_t>(ids.size());
  const std::size_t servers = peers_.size();
  pull.next.assign(servers, 0);
  pull.end.assign(servers, 0);
  if (servers == 1) {
    pull.ids.assign(ids.begin(), ids.end());
    pull.positions.clear();
    pull.end[0] = pull.remaining;
  } else {
    deal(state, ids);
    pull.ids.resize(ids.size());
    pull.positions = order_;
    for (std::size_t i = 0; i < ids.size(); ++i) pull.ids[i] = ids[order_[i]];
    for (std::size_t s = 0; s < servers; ++s) {
      pull.next[s] = begin_of_[s];
      pull.end[s] = begin_of_[s + 1];
    }
  }
  open_pulls_.push_back(index);
  send_held_back();
  return index;
}

/// In the order of initiate_pull for each server: a pull of the next step, which may wait for the end of this
/// one, never gets before what this step still needs.
bool ParameterClient::send_held_back() {
  bool any = false;
  for (std::uint32_t s = 0; s < peers_.size(); ++s) {
    bool future_held_back = false;
    for (const std::uint32_t index : open_pulls_) {
      const Pull& pull = *pulls_[index];
      if (pull.next[s] == pull.end[s]) continue;
      const bool future = waits_for_us(pull);
      if (future && future_held_back) continue;
      if (send_requests(index, s)) any = true;
      if (pull.next[s] == pull.end[s]) continue;
      // Held back: later pulls may pass a pull that waits for our own clock, and nothing else.
      if (!future) break;
      future_held_back = true;
    }
  }
  return any;
}

/// The gate may stay shut for this pull until our own clock moves on.
bool ParameterClient::waits_for_us(const Pull& pull) const noexcept {
  return (pull.flags & kPullUngated) == 0 && pull.step > completed_;
}

bool ParameterClient::send_requests(std::uint32_t index, std::uint32_t server) {
  Pull& pull = *pulls_[index];
  Peer& peer = peers_[server];
  const std::uint32_t limit =
      waits_for_us(pull) ? peer.limit() - std::max(1u, peer.limit() / 4) : peer.limit();
  const auto rows_per_message =
      static_cast<std::uint32_t>(std::min(peer.reply_body / (std::size_t{pull.dim} * sizeof(float)),
                                          peer.requests.max_body_bytes() / sizeof(RowId)));
  const std::uint32_t first = pull.next[server];
  while (pull.next[server] < pull.end[server] && peer.outstanding < limit && peer.requests.can_send()) {
    const std::uint32_t begin = pull.next[server],
                        rows = std::min(rows_per_message, pull.end[server] - begin);
    MessageHeader h;
    h.kind = MessageKind::pull;
    h.sender = static_cast<std::uint16_t>(me_.value);
    h.flags = pull.flags;
    h.step = pull.step;
    h.table = pull.table.value;
    h.rows = rows;
    h.body_bytes = static_cast<std::uint32_t>(rows * sizeof(RowId));
    h.tag = new_tag({.is_pull = true, .pull = index, .server = server, .begin = begin, .end = begin + rows});
    std::memcpy(peer.requests.body().data(), pull.ids.data() + begin, h.body_bytes);
    counters_.bytes_pulled += peer.requests.commit(h);
    pull.next[server] += rows;
  }
  return pull.next[server] != first;
}

void ParameterClient::complete_pull(Ticket ticket) {
  Pull& pull = *pulls_[ticket];
  HF_CHECK(pull.open, "complete_pull of a pull that is not open");
  wait([&] { return pull.remaining == 0; },
       "rows of table \"" + tables_[pull.table.value]->spec.name + "\" for step " +
           std::to_string(pull.step) +
           " (slowest worker behind the staleness bound, or a server that does not answer)");
  pull.open = false;
  std::erase(open_pulls_, ticket);
  free_pulls_.push_back(ticket);
  if (pull.error) pull.error->raise();
}

void ParameterClient::abandon_pull(Ticket ticket) {
  Pull& pull = *pulls_[ticket];
  HF_CHECK(pull.open, "abandon_pull of a pull that is not open");
  pull.abandoned = true;
  reap_abandoned();
}

/// Abandoned pulls whose answers have all come are free again.
void ParameterClient::reap_abandoned() {
  for (std::size_t i = 0; i < open_pulls_.size();) {
    Pull& pull = *pulls_[open_pulls_[i]];
    if (!pull.abandoned || pull.remaining > 0) {
      ++i;
      continue;
    }
    pull.open = false;
    free_pulls_.push_back(open_pulls_[i]);
    open_pulls_.erase(open_pulls_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void ParameterClient::send_rows(MessageKind kind, TableId table, std::span<const RowId> ids,
                                const float* rows, const PushArgs& args,
                                const std::shared_ptr<Outcome>& outcome) {
  const TableState& state = *tables_[table.value];
  const std::size_t row_bytes = std::size_t{state.spec.dim} * sizeof(float);
  if (peers_.size() > 1) deal(state, ids);
  for (std::uint32_t s = 0; s < peers_.size(); ++s) {
    Peer& peer = peers_[s];
    const bool single = peers_.size() == 1;
    const std::size_t begin = single ? 0 : begin_of_[s], end = single ? ids.size() : begin_of_[s + 1];
    const std::size_t rows_per_message = peer.requests.max_body_bytes() / (sizeof(RowId) + row_bytes);
    for (std::size_t at = begin; at < end; at += rows_per_message) {
      const std::size_t n = std::min(rows_per_message, end - at);
      if (outcome) wait_for_answer_room(s, "assigned rows");
      wait_for_slot(s);
      std::byte* body = peer.requests.body().data();
      std::byte* values = body + n * sizeof(RowId);
      if (single) {
        std::memcpy(body, ids.data() + at, n * sizeof(RowId));
        std::memcpy(values, rows + at * state.spec.dim, n * row_bytes);
      } else {
        for (std::size_t i = 0; i < n; ++i) {
          const std::uint32_t position = order_[at + i];
          std::memcpy(body + i * sizeof(RowId), &ids[position], sizeof(RowId));
          std::memcpy(values + i * row_bytes, rows + std::size_t{position} * state.spec.dim, row_bytes);
        }
      }
      MessageHeader h;
      h.kind = kind;
      h.sender = static_cast<std::uint16_t>(me_.value);
      h.step = args.step;
      h.table = table.value;
      h.rows = static_cast<std::uint32_t>(n);
      h.body_bytes = static_cast<std::uint32_t>(n * (sizeof(RowId) + row_bytes));
      h.weight = args.weight;
      h.learning_rate = args.learning_rate;
      if (outcome) h.tag = new_tag({.server = s, .outcome = outcome});
      const std::size_t sent = peer.requests.commit(h);
      if (kind == MessageKind::push) counters_.bytes_pushed += sent;
    }
  }
}

void ParameterClient::push(TableId table, std::span<const RowId> ids, const float* grads,
                           const PushArgs& args) {
  send_rows(MessageKind::push, table, ids, grads, args, nullptr);
  counters_.rows_pushed += ids.size();
}

void ParameterClient::assign(TableId table, std::span<const RowId> ids, const float* rows) {
  const auto outcome = std::make_shared<Outcome>(peers_.size());
  send_rows(MessageKind::assign, table, ids, rows, {}, outcome);
  wait_for_answers(*outcome,
                   "the servers to store assigned rows of table \"" + tables_[table.value]->spec.name + "\"");
}

void ParameterClient::clock(Step completed, float weight) {
  for (std::uint32_t s = 0; s < peers_.size(); ++s) {
    wait_for_slot(s);
    MessageHeader h;
    h.kind = MessageKind::clock;
    h.sender = static_cast<std::uint16_t>(me_.value);
    h.step = completed;
    h.weight = weight;
    counters_.bytes_pushed += peers_[s].requests.commit(h);
  }
  completed_ = completed;
}

void ParameterClient::request_all(MessageKind kind, const std::string& body,
                                  std::vector<std::string>* answers, const char* what) {
  for (const Peer& p : peers_)
    HF_CHECK(body.size() <= p.requests.max_body_bytes(), "a command larger than a slot");
  const auto outcome = std::make_shared<Outcome>(peers_.size());
  for (std::uint32_t s = 0; s < peers_.size(); ++s) {
    wait_for_answer_room(s, what);
    wait_for_slot(s);
    Peer& peer = peers_[s];
    std::memcpy(peer.requests.body().data(), body.data(), body.size());
    MessageHeader h;
    h.kind = kind;
    h.sender = static_cast<std::uint16_t>(me_.value);
    h.table = static_cast<std::uint32_t>(tables_.size());  // create_table: the id it shall get
    h.body_bytes = static_cast<std::uint32_t>(body.size());
    h.tag = new_tag({.server = s, .outcome = outcome});
    peer.requests.commit(h);
  }
  wait_for_answers(*outcome, std::string("every server's answer to ") + what);
  if (answers) *answers = std::move(outcome->texts);
}

TableId ParameterClient::create_table(const TableSpec& spec) {
  if (spec.dim == 0 || spec.dim > widest_row_floats())
    throw ConfigError("table \"" + spec.name + "\": a row of " + std::to_string(spec.dim) +
                      " floats does not fit a mailbox slot (at most " + std::to_string(widest_row_floats()) +
                      " floats; a larger cluster.buffer_pool_size makes larger slots)");
  request_all(MessageKind::create_table, nlohmann::json(spec).dump(), nullptr, "the creation of a table");
  auto state = std::make_unique<TableState>(
      TableState{spec, RowHash(spec.kind, spec.rows, routing_.num_shards()), {}});
  for (std::uint32_t shard = 0; shard < routing_.num_shards(); ++shard)
    state->server_of_shard.push_back(routing_.server(ShardId{shard}).value);
  tables_.push_back(std::move(state));
  return TableId{static_cast<std::uint32_t>(tables_.size() - 1)};
}

void ParameterClient::flush() { request_all(MessageKind::flush, "", nullptr, "a flush"); }
std::vector<std::string> ParameterClient::command(const std::string& json) {
  std::vector<std::string> answers;
  request_all(MessageKind::command, json, &answers, "a command");
  return answers;
}
void ParameterClient::bye() { request_all(MessageKind::bye, "", nullptr, "the goodbye"); }

}  // namespace hf
