#include "ranks/server/server.hpp"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>

#include "codec/row_block.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "io/checkpoint.hpp"
#include "routing/routing_table.hpp"
#include "table/optimizer.hpp"

namespace hf {
namespace {

std::vector<ShardId> my_shards(ServerId me, const ServerOptions& options) {
  std::vector<ServerId> servers;
  for (std::uint32_t s = 0; s < options.num_servers; ++s) servers.emplace_back(s);
  return RoutingTable(servers, options.num_shards).shards_of(me);
}

/// CPU time of the service thread.
double thread_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

}  // namespace

Server::Server(ServerPort& port, const ServerOptions& options)
    : port_(port),
      options_(options),
      shards_(my_shards(port.id(), options)),
      clocks_(port.num_workers(), options.staleness_bound),
      last_push_seq_(port.num_workers(), 0) {}

ServerReport Server::run() {
  const std::function<std::string()> what = [] { return std::string("a request of any worker"); };
  while (said_goodbye_ < port_.num_workers()) {
    const std::uint32_t seen = port_.idle().before_poll();
    bool any = false;
    for (std::uint32_t w = 0; w < port_.num_workers(); ++w) any |= serve_one(WorkerId{w});
    if (any) {
      port_.idle().busy();
    } else {
      port_.idle().nothing(seen, &what);
    }
  }
  for (const Table& t : tables_) {
    report_.rows += t.rows();
    report_.table_bytes += t.memory_bytes();
  }
  report_.max_observed_lag = clocks_.max_observed_lag();
  return report_;
}

bool Server::serve_one(WorkerId worker) {
  const auto message = port_.receive(worker);
  if (!message) return false;
  handle(worker, *message);
  port_.release(worker);
  return true;
}

void Server::handle(WorkerId worker, const MessageView& message) {
  const MessageHeader& h = message.header;
  try {
    switch (h.kind) {
      case MessageKind::create_table:
        create_table(message);
        return port_.send_ack(worker, h.tag, "");
      case MessageKind::assign:
        assign(message);
        return port_.send_ack(worker, h.tag, "");
      case MessageKind::pull:
        return pull(worker, message);
      case MessageKind::push:
        return push(worker, message);
      case MessageKind::clock:
        return clock(worker, h);
      case MessageKind::flush:
        return port_.send_ack(worker, h.tag, "");
      case MessageKind::command:
        return port_.send_ack(worker, h.tag, command(message));
      case MessageKind::bye:
        goodbye(worker);
        return port_.send_ack(worker, h.tag, "");
      case MessageKind::rows:
      case MessageKind::ack:
      case MessageKind::error:
        break;
    }
    throw MpiError(std::string("worker ") + std::to_string(worker.value) + " sent a message of kind " +
                   to_string(h.kind));
  } catch (const Error& e) {
    // Who waits for an answer gets the reason; a push has nobody waiting, so it ends this server.
    if (h.kind == MessageKind::push || h.kind == MessageKind::clock) throw;
    port_.send_error(worker, h.tag, e);
  }
}

Table& Server::table(std::uint32_t id) {
  if (id >= tables_.size())
    throw MpiError("a request for table " + std::to_string(id) + " of " + std::to_string(tables_.size()));
  return tables_[id];
}

/// The first worker creates, the others confirm.
void Server::create_table(const MessageView& message) {
  const auto text = std::string_view(reinterpret_cast<const char*>(message.body.data()), message.body.size());
  const auto spec = nlohmann::json::parse(text).get<TableSpec>();
  const std::uint32_t id = message.header.table;
  if (id == tables_.size()) {
    tables_.emplace_back(spec, options_.num_shards, shards_);
  } else if (id > tables_.size() || tables_[id].spec() != spec) {
    throw ConfigError("workers disagree about table " + std::to_string(id) + ": \"" + spec.name +
                      "\" is not as another worker created it");
  }
}

void Server::assign(const MessageView& message) {
  Table& t = table(message.header.table);
  const TableSpec& spec = t.spec();
  const RowBlockView block(message.header, message.body, spec.dim);
  const auto ids = block.ids();
  const std::size_t record_floats = t.record_floats();
  std::vector<float> records(ids.size() * record_floats);
  ApplyArgs base;
  base.learning_rate = spec.optimizer.learning_rate;
  const float* row = block.f32_rows();
  for (float* record = records.data(); record != records.data() + records.size();
       record += record_floats, row += spec.dim) {
    std::copy_n(row, spec.dim, record);
    init_optimizer_state(spec.optimizer, spec.dim, base, record);
  }
  t.restore(ids, records.data());  // in one call: all rows, or none where an id is out of range
}

// ---------------------------------------------------------------------------------------------- pull

/// SSP (Ho et al. 2013): a read at step t sees every update of steps < t − bound.
void Server::pull(WorkerId worker, const MessageView& message) {
  const MessageHeader& h = message.header;
  const bool gated = !(h.flags & kPullUngated);
  const auto ids = RowBlockView(h, message.body).ids();
  if (gated && !clocks_.may_read(h.step)) {
    deferred_.push_back({worker, h, {ids.begin(), ids.end()}});
    ++report_.deferred_pulls;
    return;
  }
  if (gated) clocks_.record_read(h.step);
  answer(worker, h, ids);
}

void Server::answer(WorkerId worker, const MessageHeader& request, std::span<const RowId> ids) {
  Table& t = table(request.table);
  RowBlockWriter rows = port_.reply_rows(worker, request, t.spec().dim);
  t.gather(ids, rows.f32_rows(), (request.flags & kPullAdmit) != 0);
  port_.send_rows(worker, request, rows);
}

void Server::answer_deferred() {
  // In the order of arrival; those that still may not read stay.
  for (std::size_t left = deferred_.size(); left > 0; --left) {
    DeferredPull d = std::move(deferred_.front());
    deferred_.pop_front();
    if (!clocks_.may_read(d.header.step)) {
      deferred_.push_back(std::move(d));
      continue;
    }
    clocks_.record_read(d.header.step);
    try {
      answer(d.worker, d.header, d.ids);
    } catch (const Error& e) {
      port_.send_error(d.worker, d.header.tag, e);
    }
  }
}

// ---------------------------------------------------------------------------------------------- push

void Server::apply(Table& t, std::span<const RowId> ids, const float* grads, const MessageHeader& header,
                   float weight) {
  ApplyArgs args;
  args.learning_rate = header.learning_rate;
  args.grad_scale = weight > 0 ? 1.0F / weight : 0.0F;
  args.step = header.step + 1;
  t.apply(ids, grads, args);
  report_.rows_applied += ids.size();
}

void Server::push(WorkerId worker, const MessageView& message) {
  // Exactly once: a ring delivers in order, so a message seen before has a number that was passed.
  Step& last = last_push_seq_[worker.value];
  if (message.header.seq <= last) return;
  last = message.header.seq;
  Table& t = table(message.header.table);
  const RowBlockView block(message.header, message.body, t.spec().dim);
  if (!synchronous()) return apply(t, block.ids(), block.f32_rows(), message.header, message.header.weight);
  // Synchronous: one update of all workers' gradients, summed in the order of the workers whatever arrives
  // first.
  StoredPush stored{worker, message.header, {}};
  if (!spare_bodies_.empty()) {
    stored.body = std::move(spare_bodies_.back());
    spare_bodies_.pop_back();
  }
  stored.body.assign(message.body.begin(), message.body.end());
  open_step(message.header.step).pushes.push_back(std::move(stored));
}

Server::OpenStep& Server::open_step(Step step) {
  OpenStep& open = open_steps_[step];
  open.weights.resize(port_.num_workers(), 0.0F);
  return open;
}

void Server::clock(WorkerId worker, const MessageHeader& header) {
  if (synchronous() && header.weight > 0) open_step(header.step - 1).weights[worker.value] = header.weight;
  clocks_.set(worker, header.step);
  apply_complete_steps();
  answer_deferred();
}

/// Who sends nothing any more holds nobody back.
void Server::goodbye(WorkerId worker) {
  ++said_goodbye_;
  clocks_.set(worker, kClockInfinite);
  apply_complete_steps();
  answer_deferred();
}

void Server::apply_complete_steps() {
  while (!open_steps_.empty() && clocks_.slowest() > open_steps_.begin()->first) {
    std::vector<StoredPush> pushes = std::move(open_steps_.begin()->second.pushes);
    // Every worker's weight counts once for the whole step, whether or not rows of it came to this server.
    const std::vector<float>& weights = open_steps_.begin()->second.weights;
    const float weight = std::accumulate(weights.begin(), weights.end(), 0.0F);
    open_steps_.erase(open_steps_.begin());
    std::stable_sort(pushes.begin(), pushes.end(), [](const StoredPush& a, const StoredPush& b) {
      return a.header.table != b.header.table ? a.header.table < b.header.table : a.worker < b.worker;
    });
    for (std::size_t begin = 0, end; begin < pushes.size(); begin = end) {
      Table& t = table(pushes[begin].header.table);
      GradientMerge& merge = merges_.try_emplace(t.spec().dim, t.spec().dim).first->second;
      merge.clear();
      for (end = begin; end < pushes.size() && pushes[end].header.table == pushes[begin].header.table;
           ++end) {
        const RowBlockView block(pushes[end].header, pushes[end].body, t.spec().dim);
        merge.add(block.ids(), block.f32_rows());
      }
      apply(t, merge.ids(), merge.grads(), pushes[begin].header, weight);
    }
    for (StoredPush& p : pushes) spare_bodies_.push_back(std::move(p.body));
  }
}

// ------------------------------------------------------------------------------------------- commands

/// {"op": "save", "dir": D, "from": i, "count": n}  writes the i-th … of my shards; [[shard, bytes, crc,
/// rows, name], …]
/// {"op": "load", "dir": D}                         reads my shards of a checkpoint
/// {"op": "statistics"}                             {"rows": …, "bytes": …, "max_observed_lag": …,
/// "cpu_seconds": …}
std::string Server::command(const MessageView& message) {
  const auto text = std::string_view(reinterpret_cast<const char*>(message.body.data()), message.body.size());
  try {
    return execute(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& e) {
    throw FormatError("command " + std::string(text) + ": " + e.what());
  }
}

std::string Server::execute(const nlohmann::json& request) {
  const auto op = request.at("op").get<std::string>();
  nlohmann::json result = nlohmann::json::object();
  if (op == "save") {
    std::vector<const Table*> tables;
    for (const Table& t : tables_) tables.push_back(&t);
    result = nlohmann::json::array();
    const auto from = request.at("from").get<std::size_t>(), count = request.at("count").get<std::size_t>();
    for (std::size_t i = from; i < std::min(from + count, shards_.size()); ++i) {
      const ShardFile f = write_shard(request.at("dir").get<std::string>(), shards_[i], tables);
      result.push_back({f.name, f.bytes, f.crc32c, f.rows});
    }
  } else if (op == "load") {
    std::vector<Table*> tables;
    for (Table& t : tables_) tables.push_back(&t);
    const auto dir = request.at("dir").get<std::string>();
    const Manifest manifest = read_manifest(dir);
    if (manifest.num_shards != options_.num_shards)
      throw ConfigError("cluster.num_shards: expected " + std::to_string(manifest.num_shards) +
                        " as in checkpoint " + dir + ", found " + std::to_string(options_.num_shards));
    for (const ShardId shard : shards_) {
      const std::string name = shard_file_name(shard);
      const auto file = std::find_if(manifest.shards.begin(), manifest.shards.end(),
                                     [&](const ShardFile& f) { return f.name == name; });
      if (file == manifest.shards.end()) throw FormatError(dir + "/manifest.json: no entry for " + name);
      read_shard(dir, *file, tables);
    }
  } else if (op == "statistics") {
    std::uint64_t rows = 0, bytes = 0;
    for (const Table& t : tables_) {
      rows += t.rows();
      bytes += t.memory_bytes();
    }
    result = {{"rows", rows},
              {"bytes", bytes},
              {"max_observed_lag", clocks_.max_observed_lag()},
              {"cpu_seconds", thread_cpu_seconds()}};
  } else {
    throw MpiError("unknown command \"" + op + "\"");
  }
  return result.dump();
}

}  // namespace hf
