// A training program of your own: a torch::nn::Module whose embedding rows live on the servers.
//
//   mpirun -np 4 build/release/tests/example_custom_module          one server, three workers
//   build/release/tests/example_custom_module                       one process that is both
#include <hyperframes/hyperframes.hpp>

#include <cstdio>

// Two-tower matching: the score of (user, item) is the dot product of their vectors plus a linear term.
struct TwoTowers : torch::nn::Module {
  hf::DistributedEmbedding users{1000, 8,
                                 hf::DistributedEmbeddingOptions{.name = "users", .init = {.scale = 0.1F}}};
  hf::DistributedEmbedding items{500, 8,
                                 hf::DistributedEmbeddingOptions{.name = "items", .init = {.scale = 0.1F}}};
  torch::nn::Linear bias{1, 1};

  TwoTowers() {
    register_module("users", users);
    register_module("items", items);
    register_module("bias", bias);
  }
  torch::Tensor forward(const torch::Tensor& user, const torch::Tensor& item, const torch::Tensor& price) {
    return (users->forward(user) * items->forward(item)).sum(1) +
           bias->forward(price.unsqueeze(1)).squeeze(1);
  }
};

int main() {
  auto group = hf::init_process_group({.staleness_bound = 1});
  if (!group->is_worker()) {  // a server: hold rows, answer, apply, until the workers leave
    group->serve();
    hf::destroy_process_group();
    return 0;
  }
  double first = 0, last = 0;
  {
    TwoTowers model;
    // Pushes gradients and pulls parameters; the embeddings' rows are updated with the same optimizer.
    hf::AsyncAdagrad optimizer(model.parameters(), /*learning_rate=*/0.1);
    torch::manual_seed(1 + group->worker_id());  // every worker has its own data

    for (int step = 0; step < 200; ++step) {
      const auto user = torch::randint(1000, {256}, torch::kInt64);
      const auto item = torch::randint(500, {256}, torch::kInt64);
      const auto price = torch::rand({256});
      // Even users like even items, and nobody likes a high price.
      const auto likes =
          (user.remainder(2) == item.remainder(2)).to(torch::kFloat32) * (price < 0.7).to(torch::kFloat32);

      optimizer.zero_grad();
      const auto loss = torch::binary_cross_entropy_with_logits(model.forward(user, item, price), likes);
      loss.backward();
      optimizer.step();
      if (step == 0) first = loss.item<double>();
      last = loss.item<double>();
    }
    group->synchronize();  // everything pushed is applied
    if (group->worker_id() == 0)
      std::printf("loss %.4f -> %.4f on %d workers\n", first, last, group->num_workers());
  }
  hf::destroy_process_group();
  return last < 0.8 * first ? 0 : 1;  // this program is a test, too
}
