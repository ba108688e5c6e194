#include "comm/parameter_client.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "codec/row_block.hpp"
#include "core/error.hpp"

namespace hf {

struct ParameterClient::TableState {
  TableSpec spec;
  RowHash hash;
  std::vector<std::uint32_t> server_of_shard;
};

namespace {

std::vector<ServerId> all_servers(std::size_t n) {
  std::vector<ServerId> servers;
  for (std::uint32_t s = 0; s < n; ++s) servers.emplace_back(s);
  return servers;
}

/// The format in which rows travel.
constexpr RowFormat kFormat = RowFormat::f32;

}  // namespace

ParameterClient::ParameterClient(Window& window, const PoolLayout& layout, const RoleMap& roles, WorkerId me,
                                 std::uint32_t num_shards, double timeout_seconds, const Liveness* liveness)
    : routing_(all_servers(roles.server_ranks.size()), num_shards),
      requests_(roles.server_ranks.size()),
      idle_(window, PoolLayout::worker_bell_offset(), timeout_seconds,
            PeerWatch(liveness, roles.server_ranks)) {
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
  return widest_row(MessageKind::push, kFormat, body);
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
       fmt::format("a free request slot of server {} (its service loop does not read)", server));
}

void ParameterClient::wait_for_answer_room(std::uint32_t server, const char* what) {
  wait([&] { return requests_.outstanding(server) < peers_[server].limit(); },
       fmt::format("room for the answer of server {} to {}", server, what));
}

/// Waits for every server's answer before it raises the first error: none arrives later, in the middle of
/// something else.
void ParameterClient::wait_for_answers(Outcome& outcome, const std::string& what) {
  wait([&] { return outcome.waiting == 0; }, what);
  outcome.raise_first();
}

bool ParameterClient::receive(std::uint32_t server) {
  Peer& peer = peers_[server];
  const auto message = peer.replies.poll();
  if (!message) return false;
  const MessageHeader& h = message->header;
  const RequestTable::Request request = requests_.close(h.tag, server);
  const std::string_view text(reinterpret_cast<const char*>(message->body.data()), message->body.size());
  if (request.pull) {
    if (h.kind == MessageKind::error) {
      PullQueue::fail(*request.pull, request.begin, request.end, ServerFailure(server, text));
    } else {
      const RowBlockView rows(h, message->body, request.pull->dim);
      PullQueue::deliver(*request.pull, request.begin, request.end, rows);
      counters_.rows_pulled += rows.size();
    }
    counters_.bytes_pulled += message_bytes(h.body_bytes);
  } else if (h.kind == MessageKind::error) {
    request.outcome->errors[server] = ServerFailure(server, text);
  } else {
    request.outcome->texts[server] = std::string(text);
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

PullHandle ParameterClient::initiate_pull(TableId table, std::span<const RowId> ids, float* out, Step step,
                                          std::uint8_t flags, std::shared_ptr<const void> keep_alive) {
  pulls_.reap();
  const TableState& state = *tables_[table.value];
  const std::size_t servers = peers_.size();
  if (servers > 1) deal(state, ids);
  auto [handle, pull] = pulls_.add(servers);
  pull.table = table;
  pull.dim = state.spec.dim;
  pull.step = step;
  pull.flags = flags;
  pull.out = out;
  pull.keep_alive = std::move(keep_alive);
  if (servers == 1) {
    pull.ids.assign(ids.begin(), ids.end());
    pull.positions.clear();
    pull.end[0] = static_cast<std::uint32_t>(ids.size());
  } else {
    pull.ids.resize(ids.size());
    pull.positions = order_;
    for (std::size_t i = 0; i < ids.size(); ++i) pull.ids[i] = ids[order_[i]];
    for (std::size_t s = 0; s < servers; ++s) {
      pull.next[s] = begin_of_[s];
      pull.end[s] = begin_of_[s + 1];
    }
  }
  pull.remaining = static_cast<std::uint32_t>(ids.size());
  send_held_back();
  return std::move(handle);
}

bool ParameterClient::send_held_back() {
  bool any = false;
  for (std::uint32_t s = 0; s < peers_.size(); ++s)
    any |= pulls_.send_in_order(s, completed_, [&](Pull& pull) { return send_requests(pull, s); });
  return any;
}

bool ParameterClient::send_requests(Pull& pull, std::uint32_t server) {
  Peer& peer = peers_[server];
  const std::uint32_t limit =
      pull.waits_for_us(completed_) ? peer.limit() - std::max(1u, peer.limit() / 4) : peer.limit();
  const std::uint32_t rows_per_message = std::min(
      RowBlockWriter::capacity(MessageKind::rows, kFormat, pull.dim, peer.reply_body),
      RowBlockWriter::capacity(MessageKind::pull, kFormat, pull.dim, peer.requests.max_body_bytes()));
  const std::uint32_t first = pull.next[server];
  while (pull.next[server] < pull.end[server] && requests_.outstanding(server) < limit &&
         peer.requests.can_send()) {
    const std::uint32_t begin = pull.next[server],
                        rows = std::min(rows_per_message, pull.end[server] - begin);
    RowBlockWriter block(peer.requests.body(), MessageKind::pull, kFormat, pull.dim, rows);
    block.write_ids(pull.ids.data() + begin);
    MessageHeader h;
    block.describe(h);
    h.flags = pull.flags;
    h.step = pull.step;
    h.table = pull.table.value;
    h.tag = requests_.open({.server = server, .pull = &pull, .begin = begin, .end = begin + rows});
    counters_.bytes_pulled += peer.requests.commit(h);
    pull.next[server] += rows;
  }
  return pull.next[server] != first;
}

void ParameterClient::complete_pull(PullHandle& handle) {
  const Pull& pull = pulls_.at(handle);
  wait([&] { return pull.remaining == 0; }, fmt::format("rows of table \"{}\" for step {} (slowest worker "
                                                        "behind the staleness bound, or a server that does "
                                                        "not answer)",
                                                        tables_[pull.table.value]->spec.name, pull.step));
  pulls_.complete(handle);
}

void ParameterClient::send_rows(MessageKind kind, TableId table, std::span<const RowId> ids,
                                const float* rows, const PushArgs& args,
                                const std::shared_ptr<Outcome>& outcome) {
  const TableState& state = *tables_[table.value];
  const std::uint32_t dim = state.spec.dim;
  const bool single = peers_.size() == 1;
  if (!single) deal(state, ids);
  for (std::uint32_t s = 0; s < peers_.size(); ++s) {
    Peer& peer = peers_[s];
    const std::size_t begin = single ? 0 : begin_of_[s], end = single ? ids.size() : begin_of_[s + 1];
    const std::size_t rows_per_message =
        RowBlockWriter::capacity(kind, kFormat, dim, peer.requests.max_body_bytes());
    for (std::size_t at = begin; at < end; at += rows_per_message) {
      const auto n = static_cast<std::uint32_t>(std::min(rows_per_message, end - at));
      if (outcome) wait_for_answer_room(s, "assigned rows");
      wait_for_slot(s);
      RowBlockWriter block(peer.requests.body(), kind, kFormat, dim, n);
      if (single) {
        block.write_ids(ids.data() + at);
        block.write_rows(rows + at * dim);
      } else {
        for (std::uint32_t i = 0; i < n; ++i) {
          const std::uint32_t position = order_[at + i];
          block.write(i, ids[position], rows + std::size_t{position} * dim);
        }
      }
      MessageHeader h;
      block.describe(h);
      h.step = args.step;
      h.table = table.value;
      h.weight = args.weight;
      h.learning_rate = args.learning_rate;
      if (outcome) h.tag = requests_.open({.server = s, .outcome = outcome});
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
  wait_for_answers(*outcome, fmt::format("the servers to store assigned rows of table \"{}\"",
                                         tables_[table.value]->spec.name));
}

void ParameterClient::clock(Step completed, float weight) {
  for (std::uint32_t s = 0; s < peers_.size(); ++s) {
    wait_for_slot(s);
    MessageHeader h;
    h.kind = MessageKind::clock;
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
    h.table = static_cast<std::uint32_t>(tables_.size());  // create_table: the id it shall get
    h.body_bytes = static_cast<std::uint32_t>(body.size());
    h.tag = requests_.open({.server = s, .outcome = outcome});
    peer.requests.commit(h);
  }
  wait_for_answers(*outcome, fmt::format("every server's answer to {}", what));
  if (answers) *answers = std::move(outcome->texts);
}

TableId ParameterClient::create_table(const TableSpec& spec) {
  if (spec.dim == 0 || spec.dim > widest_row_floats())
    throw ConfigError(
        fmt::format("table \"{}\": a row of {} floats does not fit a mailbox slot (at most {} floats; a "
                    "larger cluster.buffer_pool_size makes larger slots)",
                    spec.name, spec.dim, widest_row_floats()));
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
