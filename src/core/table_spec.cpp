#include "core/table_spec.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"

namespace hf {
namespace {

template <class Enum, std::size_t N>
const char* name_of(const std::array<std::pair<Enum, const char*>, N>& names, Enum value) noexcept {
  for (const auto& [v, name] : names)
    if (v == value) return name;
  return "?";
}

template <class Enum, std::size_t N>
Enum value_of(const std::array<std::pair<Enum, const char*>, N>& names, const std::string& text,
              const char* what) {
  std::string valid;
  for (const auto& [v, name] : names) {
    if (text == name) return v;
    valid += valid.empty() ? name : std::string(", ") + name;
  }
  throw ConfigError(std::string("unknown ") + what + " \"" + text + "\" (expected one of: " + valid + ")");
}

constexpr std::array<std::pair<OptimizerKind, const char*>, 5> kOptimizers = {
    {{OptimizerKind::sgd, "sgd"},
     {OptimizerKind::adagrad, "adagrad"},
     {OptimizerKind::rowwise_adagrad, "rowwise_adagrad"},
     {OptimizerKind::adam, "adam"},
     {OptimizerKind::ftrl, "ftrl"}}};
constexpr std::array<std::pair<TableKind, const char*>, 2> kTableKinds = {
    {{TableKind::static_rows, "static"}, {TableKind::dynamic, "dynamic"}}};
constexpr std::array<std::pair<InitKind, const char*>, 3> kInitKinds = {
    {{InitKind::zeros, "zeros"}, {InitKind::uniform, "uniform"}, {InitKind::normal, "normal"}}};

}  // namespace

std::uint32_t optimizer_slots(OptimizerKind kind, std::uint32_t dim) noexcept {
  switch (kind) {
    case OptimizerKind::sgd:
      return 0;
    case OptimizerKind::adagrad:
      return dim;
    case OptimizerKind::rowwise_adagrad:
      return 1;
    case OptimizerKind::adam:
    case OptimizerKind::ftrl:
      return 2 * dim;
  }
  return 0;
}

std::string table_name_key(const std::string& name) {
  std::string key = name;
  for (char& c : key)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return key;
}

std::string table_name_problem(const std::string& name) {
  constexpr std::size_t kLongest = 200;
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  if (name.empty()) return "an empty name";
  if (table_name_key(name) == kDenseTable)
    return "\"" + name + "\" is reserved: the parameters of the dense network are stored under it";
  if (name == "." || name == "..") return "\"" + name + "\" means a folder";
  if (name.size() > kLongest) return "expected at most 200 bytes, found " + std::to_string(name.size());
  if (name.find('/') != std::string::npos) return "\"" + name + "\" contains \"/\"";
  if (blank(name.front()) || blank(name.back())) return "\"" + name + "\" begins or ends with a blank";
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "the name contains a control character";
  return "";
}

const char* to_string(OptimizerKind kind) noexcept { return name_of(kOptimizers, kind); }
const char* to_string(TableKind kind) noexcept { return name_of(kTableKinds, kind); }
const char* to_string(InitKind kind) noexcept { return name_of(kInitKinds, kind); }
OptimizerKind optimizer_kind_from_string(const std::string& name) {
  return value_of(kOptimizers, name, "optimizer");
}

void to_json(nlohmann::json& j, const TableSpec& s) {
  const OptimizerSpec& o = s.optimizer;
  j = {{"name", s.name},
       {"kind", to_string(s.kind)},
       {"rows", s.rows},
       {"dim", s.dim},
       {"wrap_ids", s.wrap_ids},
       {"optimizer",
        {{"name", to_string(o.kind)},
         {"learning_rate", o.learning_rate},
         {"epsilon", o.epsilon},
         {"initial_accumulator", o.initial_accumulator},
         {"beta1", o.beta1},
         {"beta2", o.beta2},
         {"l1", o.l1},
         {"l2", o.l2},
         {"ftrl_beta", o.ftrl_beta},
         {"weight_decay", o.weight_decay}}},
       {"init",
        {{"kind", to_string(s.init.kind)},
         {"scale", s.init.scale},
         {"zero_tail", s.init.zero_tail},
         {"seed", s.init.seed}}}};
}

void from_json(const nlohmann::json& j, TableSpec& s) {
  try {
    s.name = j.at("name").get<std::string>();
    s.kind = value_of(kTableKinds, j.at("kind").get<std::string>(), "table kind");
    s.rows = j.at("rows").get<std::uint64_t>();
    s.dim = j.at("dim").get<std::uint32_t>();
    s.wrap_ids = j.at("wrap_ids").get<bool>();
    const auto& o = j.at("optimizer");
    s.optimizer.kind = value_of(kOptimizers, o.at("name").get<std::string>(), "optimizer");
    s.optimizer.learning_rate = o.at("learning_rate").get<float>();
    s.optimizer.epsilon = o.at("epsilon").get<float>();
    s.optimizer.initial_accumulator = o.at("initial_accumulator").get<float>();
    s.optimizer.beta1 = o.at("beta1").get<float>();
    s.optimizer.beta2 = o.at("beta2").get<float>();
    s.optimizer.l1 = o.at("l1").get<float>();
    s.optimizer.l2 = o.at("l2").get<float>();
    s.optimizer.ftrl_beta = o.at("ftrl_beta").get<float>();
    s.optimizer.weight_decay = o.at("weight_decay").get<float>();
    const auto& i = j.at("init");
    s.init.kind = value_of(kInitKinds, i.at("kind").get<std::string>(), "initial value kind");
    s.init.scale = i.at("scale").get<float>();
    s.init.zero_tail = i.at("zero_tail").get<std::uint32_t>();
    s.init.seed = i.at("seed").get<std::uint64_t>();
  } catch (const nlohmann::json::exception& e) {
    throw FormatError(std::string("table description: ") + e.what());
  } catch (const ConfigError& e) {
    throw FormatError(std::string("table description: ") + e.what());
  }
}

}  // namespace hf
