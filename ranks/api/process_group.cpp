#include "hyperframes/process_group.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "ranks/api/context.hpp"

namespace hf {

ProcessGroup::ProcessGroup(std::shared_ptr<Context> context) : context_(std::move(context)) {}

int ProcessGroup::rank() const noexcept { return context_->me.value; }
int ProcessGroup::size() const noexcept { return context_->session.size(); }
bool ProcessGroup::is_worker() const noexcept { return context_->worker_id.has_value(); }
bool ProcessGroup::is_server() const noexcept { return context_->server_id.has_value(); }
int ProcessGroup::worker_id() const {
  HF_CHECK(is_worker(), "worker_id() of a ps rank");
  return static_cast<int>(context_->worker_id->value);
}
int ProcessGroup::num_workers() const noexcept {
  return static_cast<int>(context_->roles.worker_ranks.size());
}
int ProcessGroup::num_servers() const noexcept {
  return static_cast<int>(context_->roles.server_ranks.size());
}
std::string ProcessGroup::transport() const { return to_string(context_->window->transport()); }

std::string ProcessGroup::roles() const {
  std::string text;
  for (const Role role : {Role::ps, Role::worker, Role::hybrid}) {
    const auto n = std::count(context_->roles.role_of_rank.begin(), context_->roles.role_of_rank.end(), role);
    if (n == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + to_string(role) +
            (role == Role::worker && n > 1 ? "s" : "");
  }
  return text;
}

void ProcessGroup::serve() { context_->serve(); }
void ProcessGroup::synchronize() { context_->synchronize(); }
void ProcessGroup::barrier(const std::string& what) { context_->workers.barrier(what); }
void ProcessGroup::all_reduce_sum(std::vector<double>& values, const std::string& what) {
  context_->workers.all_reduce_sum(values.data(), values.size(), what);
}
std::vector<std::vector<std::byte>> ProcessGroup::gather(const std::vector<std::byte>& bytes,
                                                         const std::string& what) {
  return context_->workers.gather(bytes, what);
}

std::shared_ptr<ProcessGroup> init_process_group(const ProcessGroupOptions& options) {
  if (Context::slot()) throw ConfigError("hf::init_process_group was called twice");
  Context::slot() = std::make_shared<Context>(options);
  return std::make_shared<ProcessGroup>(Context::slot());
}

void destroy_process_group() {
  if (!Context::slot()) return;
  Context::slot()->leave();
  Context::slot().reset();
}

}  // namespace hf
