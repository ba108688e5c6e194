#include "ranks/api/context.hpp"

#include <algorithm>

#include "comm/abort.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "model/blas.hpp"
#include "routing/routing_table.hpp"

namespace hf {
namespace {

RoleChoice role_from_string(const std::string& text) {
  if (text.empty()) return RoleChoice::automatic;
  if (text == "ps") return RoleChoice::ps;
  if (text == "worker") return RoleChoice::worker;
  if (text == "hybrid") return RoleChoice::hybrid;
  throw ConfigError("role: expected ps, worker or hybrid, found \"" + text + "\"");
}
Transport transport_from_string(const std::string& text) {
  if (text == "auto") return Transport::automatic;
  if (text == "shm") return Transport::shm;
  if (text == "mpi") return Transport::mpi;
  throw ConfigError("transport: expected auto, shm or mpi, found \"" + text + "\"");
}
ClusterConfig cluster_of(const ProcessGroupOptions& o) {
  ClusterConfig c;
  c.role = role_from_string(o.role);
  c.ps = o.ps;
  c.ps_ratio = o.ps_ratio;
  c.ps_placement = o.packed_placement ? Placement::packed : Placement::spread;
  c.num_shards = o.num_shards;
  c.transport = transport_from_string(o.transport);
  c.buffer_pool_size = o.buffer_pool_size;
  return c;
}

}  // namespace

std::shared_ptr<Context>& Context::slot() {
  static std::shared_ptr<Context> context;
  return context;
}

Context& Context::current() {
  if (!slot()) throw ConfigError("hf::init_process_group has to be called first");
  return *slot();
}

Context::Context(const ProcessGroupOptions& o)
    : options(o), control(Communicator::world()), host(host_name()) {
  control.set_timeout(o.wait_timeout_seconds);
  me = Rank{session.rank()};

  // Every rank checks on its own, then all agree: one list of problems, the same exit everywhere.
  std::string problem;
  RoleChoice choice = RoleChoice::automatic;
  try {
    choice = role_from_string(o.role);
    transport_from_string(o.transport);
  } catch (const ConfigError& e) {
    problem = e.what();
  }
  const auto infos_text = control.all_gather(
      host + '\n' + std::to_string(static_cast<int>(choice)) + '\n' + problem, "all ranks to start");
  std::vector<RankInfo> infos;
  std::string problems;
  for (const std::string& text : infos_text) {
    const std::size_t a = text.find('\n'), b = text.find('\n', a + 1);
    infos.push_back({text.substr(0, a), static_cast<RoleChoice>(std::stoi(text.substr(a + 1, b - a - 1)))});
    const std::string p = text.substr(b + 1);
    if (!p.empty() && problems.find(p) == std::string::npos) problems += (problems.empty() ? "" : "\n") + p;
  }
  if (!problems.empty()) throw ConfigError(problems);
  const ClusterConfig cluster = cluster_of(o);
  roles = assign_roles(infos, cluster);
  for (std::uint32_t w = 0; w < roles.worker_ranks.size(); ++w)
    if (roles.worker_ranks[w] == me) worker_id = WorkerId{w};
  for (std::uint32_t s = 0; s < roles.server_ranks.size(); ++s)
    if (roles.server_ranks[s] == me) server_id = ServerId{s};
  layout = std::make_unique<PoolLayout>(roles, o.buffer_pool_size);
  workers = control.split(worker_id.has_value(), me.value);
  if (workers) workers.set_timeout(o.wait_timeout_seconds);
  window = make_window(cluster.transport, o.buffer_pool_size);
  liveness.emplace(*window, *layout, roles, me);
  heartbeat.emplace(*window, *layout, roles, me, o.wait_timeout_seconds);
  // A ps over a window that needs progress has one thread in MPI: its service loop, and who waits in a collective, beat.
  const bool own_beats = worker_id || !window->traits().needs_progress;
  if (own_beats) pacemaker.emplace(*heartbeat, *window);
  control.watch(*liveness, own_beats ? nullptr : &*heartbeat);
  if (workers) workers.watch(*liveness, nullptr);

  if (worker_id) {
    int threads = static_cast<int>(o.compute_threads);
    if (threads == 0) {
      const auto here =
          std::count_if(infos.begin(), infos.end(), [&](const RankInfo& i) { return i.host == host; });
      // One core of the share is for the readers, the id merging and, on a hybrid, the service thread.
      threads =
          std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / static_cast<int>(here) - 1);
    }
    set_compute_threads(threads);
    client_ = std::make_unique<ParameterClient>(*window, *layout, roles, *worker_id, o.num_shards,
                                                o.wait_timeout_seconds, &*liveness);
  }
  if (server_id && worker_id) start_service();
}

Context::~Context() {
  // Not left (an exception unwinds): the service thread waits for a goodbye that will not come; the job is aborted.
  if (service_.joinable()) service_.detach();
}

void Context::start_service() {
  service_ = std::thread([this] {
    try {
      serve();
    } catch (const std::exception& e) {
      abort_job(e);
    }
  });
}

void Context::serve() {
  HF_CHECK(server_id.has_value(), "serve() on a rank that is no server");
  ServerPort port(*window, *layout, roles, *server_id, options.wait_timeout_seconds, &*liveness);
  if (!pacemaker) port.idle().beat_with(&*heartbeat);
  Server server(port, {.num_servers = static_cast<std::uint32_t>(roles.server_ranks.size()),
                       .num_shards = options.num_shards,
                       .staleness_bound = options.staleness_bound});
  server_report = server.run();
}

void Context::say_goodbye() {
  if (said_goodbye_) return;
  said_goodbye_ = true;
  if (client_) client_->bye();
  if (service_.joinable()) service_.join();
}

void Context::leave() {
  if (left_) return;
  left_ = true;
  say_goodbye();
  control.barrier("all ranks to finish");
  if (pacemaker) pacemaker->stop();
}

ParameterClient& Context::client() {
  if (!client_)
    throw ConfigError("this rank is a ps: only workers and hybrids train (call serve() on a ps rank)");
  return *client_;
}

void Context::synchronize() {
  ParameterClient& c = client();
  c.clock(kClockInfinite, 0);
  c.flush();
  workers.barrier("all workers to finish their batches");
  double latest = static_cast<double>(step);
  workers.all_reduce_max(&latest, 1, "all workers' clocks");
  step = static_cast<Step>(latest);
  c.clock(step, 0);
  c.flush();
  workers.barrier("all workers to set their clocks");
}

std::uint8_t Context::pull_flags() const noexcept { return inference ? kPullUngated : kPullAdmit; }

TableId Context::create(LazyTable& table) {
  if (!table.id) {
    if (table.inherits_optimizer && row_optimizer) table.spec.optimizer = *row_optimizer;
    table.id = client().create_table(table.spec);
  }
  return *table.id;
}

void Context::check_table_name(const std::string& name) const {
  const std::string problem = table_name_problem(name);
  if (!problem.empty()) throw ConfigError("name of an embedding: " + problem);
  for (const auto& other : tables)
    if (table_name_key(other->spec.name) == table_name_key(name))
      throw ConfigError("two embeddings with the name \"" + name + "\"" +
                        (other->spec.name == name ? "" : " (upper and lower case do not tell names apart)"));
}

void Context::create_all_tables() {
  for (const auto& t : tables) create(*t);
}

}  // namespace hf
