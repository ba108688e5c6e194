#include "model/embedding_gather.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "core/error.hpp"
#include "core/random.hpp"

namespace hf {
namespace {

using torch::Tensor;

// A column with arrays of its own, and the same as tensors.
struct Column {
  std::vector<std::uint32_t> index, offsets;
  std::vector<float> weights;
  Pooling pooling = Pooling::sum;

  GatherColumn view() const {
    return {index.data(), offsets.empty() ? nullptr : offsets.data(),
            weights.empty() ? nullptr : weights.data(), pooling};
  }
};

Column single(std::int64_t batch, std::uint32_t unique_rows, std::uint64_t seed) {
  Column column;
  for (std::int64_t b = 0; b < batch; ++b)
    column.index.push_back(
        static_cast<std::uint32_t>(mix64(seed, static_cast<std::uint64_t>(b)) % unique_rows));
  return column;
}

// Bags of 0 … 4 ids.
Column bags(std::int64_t batch, std::uint32_t unique_rows, std::uint64_t seed, Pooling pooling) {
  Column column{{}, {0}, {}, pooling};
  SplitMix64 random(seed);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::uint64_t n = random() % 5; n > 0; --n)
      column.index.push_back(static_cast<std::uint32_t>(random() % unique_rows));
    column.offsets.push_back(static_cast<std::uint32_t>(column.index.size()));
  }
  return column;
}

void add_weights(Column& column, std::uint64_t seed) {
  SplitMix64 random(seed);
  for (std::size_t i = 0; i < column.index.size(); ++i)
    column.weights.push_back(uniform_float(random()) * 3 - 1);
}

// torch's own embedding_bag of one column: [batch, dim].
Tensor reference(const Tensor& rows, const Column& column, std::int64_t batch) {
  const auto ids =
      torch::tensor(std::vector<std::int64_t>(column.index.begin(), column.index.end()), torch::kLong);
  Tensor offsets = torch::arange(batch + 1, torch::kLong);
  if (!column.offsets.empty())
    offsets =
        torch::tensor(std::vector<std::int64_t>(column.offsets.begin(), column.offsets.end()), torch::kLong);
  Tensor weights;
  if (!column.weights.empty()) weights = torch::tensor(column.weights).to(rows.scalar_type());
  // Per-sample weights exist for sums only: the mean of weighted rows is their sum by the number of ids.
  const auto sum = std::get<0>(torch::embedding_bag(rows, ids, offsets, false, 0, false, weights, true));
  if (column.pooling == Pooling::sum) return sum;
  const auto counts = (offsets.slice(0, 1) - offsets.slice(0, 0, -1)).clamp_min(1).to(rows.scalar_type());
  return sum / counts.unsqueeze(1);
}

class EmbeddingGather : public testing::TestWithParam<std::int64_t> {};

TEST_P(EmbeddingGather, EqualsEmbeddingBagInForwardAndBackward) {
  const std::int64_t dim = GetParam();
  constexpr std::uint32_t kRows = 50;
  for (const std::int64_t batch : {1, 63, 200}) {
    std::vector<Column> columns{
        single(batch, kRows, 1), bags(batch, kRows, 2, Pooling::sum), bags(batch, kRows, 3, Pooling::mean),
        single(batch, kRows, 4), bags(batch, kRows, 5, Pooling::sum), bags(batch, kRows, 6, Pooling::mean)};
    for (std::size_t c = 3; c < 6; ++c) add_weights(columns[c], c);
    std::vector<GatherColumn> views;
    for (const auto& column : columns) views.push_back(column.view());

    for (const auto type : {torch::kFloat, torch::kDouble}) {
      torch::manual_seed(dim);
      const auto a = torch::randn({kRows, dim}, type).requires_grad_();
      const auto b = a.detach().clone().requires_grad_();
      const auto out = embedding_gather(a, views, batch);
      std::vector<Tensor> expected;
      for (const auto& column : columns) expected.push_back(reference(b, column, batch));
      const auto stacked = torch::stack(expected, 1);
      ASSERT_EQ(out.sizes(), stacked.sizes());
      const double tolerance = type == torch::kFloat ? 1e-5 : 1e-12;
      EXPECT_TRUE(torch::allclose(out, stacked, tolerance, tolerance));
      const auto weight = torch::randn_like(out);
      (out * weight).sum().backward();
      (stacked * weight).sum().backward();
      EXPECT_TRUE(torch::allclose(a.grad(), b.grad(), tolerance, 10 * tolerance));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dims, EmbeddingGather, testing::Values(1, 3, 8, 16, 17, 32, 64));

TEST(EmbeddingGatherEdges, EmptyBagIsZeroAndGivesNoGradient) {
  Column column{{}, {0, 0, 0}, {}, Pooling::mean};
  const std::vector<GatherColumn> views{column.view()};
  const auto rows = torch::ones({2, 16}).requires_grad_();
  const auto out = embedding_gather(rows, views, 2);
  EXPECT_TRUE(torch::equal(out, torch::zeros({2, 1, 16})));
  out.sum().backward();
  EXPECT_TRUE(torch::equal(rows.grad(), torch::zeros({2, 16})));
}

TEST(EmbeddingGatherEdges, NoRowsAtAll) {
  Column column{{}, {0, 0}, {}, Pooling::sum};
  const std::vector<GatherColumn> views{column.view()};
  const auto rows = torch::empty({0, 8}).requires_grad_();
  const auto out = embedding_gather(rows, views, 1);
  EXPECT_EQ(out.sizes(), (std::vector<std::int64_t>{1, 1, 8}));
  out.sum().backward();
  EXPECT_EQ(rows.grad().size(0), 0);
  Column none;
  EXPECT_EQ(embedding_gather(rows, std::vector<GatherColumn>{none.view()}, 0).sizes(),
            (std::vector<std::int64_t>{0, 1, 8}));
}

TEST(EmbeddingGatherEdges, GradientOfASliceIsReadInPlace) {
  const auto column = single(5, 7, 1);
  const std::vector<GatherColumn> views{column.view(), column.view()};
  const auto a = torch::randn({7, 4}).requires_grad_();
  const auto b = a.detach().clone().requires_grad_();
  const auto weight = torch::randn({5, 11});
  (torch::cat({embedding_gather(a, views, 5).flatten(1), torch::ones({5, 3})}, 1) * weight).sum().backward();
  const auto picked = reference(b, column, 5);
  (torch::cat({picked, picked, torch::ones({5, 3})}, 1) * weight).sum().backward();
  EXPECT_TRUE(torch::allclose(a.grad(), b.grad()));
}

TEST(EmbeddingGatherEdges, ExpandedAndTransposedGradients) {
  const auto column = single(6, 7, 1);
  const std::vector<GatherColumn> views{column.view(), column.view(), column.view()};
  const auto a = torch::randn({7, 4}).requires_grad_();
  const auto b = a.detach().clone().requires_grad_();
  const auto weight = torch::randn({4, 3, 6});
  (embedding_gather(a, views, 6).permute({2, 1, 0}) * weight).sum().backward();
  const auto picked = reference(b, column, 6);
  (torch::stack({picked, picked, picked}, 1).permute({2, 1, 0}) * weight).sum().backward();
  EXPECT_TRUE(torch::allclose(a.grad(), b.grad()));
  a.mutable_grad() = Tensor();
  embedding_gather(a, views, 6).sum().backward();  // its gradient is one expanded number
  EXPECT_EQ(a.grad().sum().item<float>(), 6.0F * 3 * 4);
}

TEST(EmbeddingGatherEdges, IsBitIdenticalFromRunToRun) {
  std::vector<Column> columns{bags(300, 9, 1, Pooling::sum), single(300, 9, 2)};
  const std::vector<GatherColumn> views{columns[0].view(), columns[1].view()};
  const auto grad_of = [&] {
    torch::manual_seed(4);
    const auto rows = torch::randn({9, 16}).requires_grad_();
    const auto weight = torch::randn({300, 2, 16});
    (embedding_gather(rows, views, 300) * weight).sum().backward();
    return rows.grad();
  };
  EXPECT_TRUE(torch::equal(grad_of(), grad_of()));
}

TEST(EmbeddingGatherEdges, RefusesWhatWouldReadOutside) {
  const auto rows = torch::zeros({3, 4});
  Column outside{{0, 3}, {}, {}, Pooling::sum};
  EXPECT_THROW(embedding_gather(rows, std::vector<GatherColumn>{outside.view()}, 2), CheckFailed);
  Column falling{{0, 1, 2}, {0, 3, 2}, {}, Pooling::sum};
  EXPECT_THROW(embedding_gather(rows, std::vector<GatherColumn>{falling.view()}, 2), CheckFailed);
  Column fine{{0, 2}, {}, {}, Pooling::sum};
  EXPECT_NO_THROW(embedding_gather(rows, std::vector<GatherColumn>{fine.view()}, 2));
}

TEST(EmbeddingGatherEdges, KeepsTheOwnerAliveUntilBackwardIsDone) {
  auto owner = std::make_shared<Column>(single(4, 3, 1));
  std::weak_ptr<Column> watch = owner;
  const auto rows = torch::randn({3, 8}).requires_grad_();
  auto out = embedding_gather(rows, std::vector<GatherColumn>{owner->view()}, 4, owner);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  auto loss = out.sum();
  loss.backward();
  EXPECT_EQ(rows.grad().sum().item<float>(), 32.0F);
  out = Tensor();
  loss = Tensor();
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace hf
