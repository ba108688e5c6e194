#include "core/table_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace hf {
namespace {

TableSpec example() {
  TableSpec s;
  s.name = "items \"quoted\"";
  s.kind = TableKind::dynamic;
  s.rows = 18446744073709551615ULL;
  s.dim = 17;
  s.wrap_ids = true;
  s.optimizer = {.kind = OptimizerKind::ftrl,
                 .learning_rate = 0.1F,
                 .epsilon = 1e-10F,
                 .initial_accumulator = 0.3F,
                 .beta1 = 0.8F,
                 .beta2 = 0.99F,
                 .l1 = 0.7F,
                 .l2 = 0.9F,
                 .ftrl_beta = 1.1F,
                 .weight_decay = 1e-5F};
  s.init = {.kind = InitKind::normal, .scale = 0.07F, .zero_tail = 2, .seed = 18446744073709551614ULL};
  return s;
}

TEST(TableSpecJson, RoundTripsThroughText) {
  const TableSpec spec = example();
  const std::string text = nlohmann::json(spec).dump();
  EXPECT_EQ(nlohmann::json::parse(text).get<TableSpec>(), spec);
}

TEST(TableSpecJson, EveryKindRoundTrips) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adagrad, OptimizerKind::rowwise_adagrad,
                                   OptimizerKind::adam, OptimizerKind::ftrl}) {
    TableSpec spec = example();
    spec.optimizer.kind = kind;
    EXPECT_EQ(nlohmann::json(spec).get<TableSpec>(), spec);
    EXPECT_EQ(optimizer_kind_from_string(to_string(kind)), kind);
  }
  for (const InitKind kind : {InitKind::zeros, InitKind::uniform, InitKind::normal}) {
    TableSpec spec = example();
    spec.init.kind = kind;
    EXPECT_EQ(nlohmann::json(spec).get<TableSpec>(), spec);
  }
}

TEST(TableSpecJson, MissingAndWrongKeysAreFormatErrors) {
  for (const char* key : {"name", "kind", "rows", "dim", "wrap_ids", "optimizer", "init"}) {
    nlohmann::json j = example();
    j.erase(key);
    try {
      j.get<TableSpec>();
      ADD_FAILURE() << "accepted without " << key;
    } catch (const FormatError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr(key));
    }
  }
  nlohmann::json j = example();
  j["kind"] = "elastic";
  EXPECT_THROW(j.get<TableSpec>(), FormatError);
}

TEST(TableSpec, OptimizerSlots) {
  EXPECT_EQ(optimizer_slots(OptimizerKind::sgd, 16), 0U);
  EXPECT_EQ(optimizer_slots(OptimizerKind::adagrad, 16), 16U);
  EXPECT_EQ(optimizer_slots(OptimizerKind::rowwise_adagrad, 16), 1U);
  EXPECT_EQ(optimizer_slots(OptimizerKind::adam, 16), 32U);
  EXPECT_EQ(optimizer_slots(OptimizerKind::ftrl, 16), 32U);
}

TEST(TableSpec, UnknownOptimizerListsTheNames) {
  try {
    optimizer_kind_from_string("adamax");
    FAIL() << "accepted";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("sgd, adagrad, rowwise_adagrad, adam, ftrl"));
  }
}

}  // namespace
}  // namespace hf
