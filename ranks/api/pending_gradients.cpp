#include <algorithm>

#include "core/error.hpp"
#include "ranks/api/context.hpp"

namespace hf {

void PendingGradients::note(std::uint64_t forward, const torch::Tensor& rows,
                            const std::vector<RowGradients>& parts) {
  if (were_pushed_)
    throw ConfigError(
        "backward() after step() without zero_grad(): the gradients of the rows were pushed and are gone, so "
        "they cannot "
        "be accumulated any further; call the optimizer's zero_grad() after each step()");
  // Backward passes go from the last forward to the first; a few lookups per step.
  const auto at = std::lower_bound(lookups_.begin(), lookups_.end(), forward,
                                   [](const Lookup& l, std::uint64_t number) { return l.forward < number; });
  if (at != lookups_.end() && at->forward == forward) return;
  lookups_.insert(at, {forward, rows, parts});
}

void PendingGradients::pushed() {
  were_pushed_ = !lookups_.empty();
  // A graph that is kept may still hold the rows.
  for (Lookup& l : lookups_) l.rows.mutable_grad() = torch::Tensor();
  lookups_.clear();
}

void PendingGradients::zero() {
  pushed();
  were_pushed_ = false;
}

}  // namespace hf
