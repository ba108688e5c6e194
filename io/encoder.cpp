#include "io/encoder.hpp"

#define XXH_INLINE_ALL  // short keys: the call would cost as much as the hash
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace hf {
namespace {

std::uint64_t xxh64(std::string_view text, std::uint64_t seed) noexcept {
  return XXH64(text.data(), text.size(), seed);
}

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return xxh64(text, 0); }
};
using Vocabulary = std::unordered_map<std::string, RowId, TextHash, std::equal_to<>>;

std::string shown(std::string_view text) { return "'" + std::string(text.substr(0, 40)) + "'"; }

/// The table behind a sparse column.
struct Lookup {
  std::string table;
  std::uint64_t rows = 0;  ///< 0: dynamic, any id
  bool wrap = false;

  bool place(RowId& id, std::string& reason) const {
    if (rows == 0 || id < rows) return true;
    if (wrap) {
      id %= rows;
      return true;
    }
    reason = "table " + table + ": id " + std::to_string(id) + " is out of range, the table has " +
             std::to_string(rows) + " rows";
    return false;
  }
};

struct DensePlan {
  std::size_t raw = 0, column = 0;
  std::string name;
  NumericTransform transform = NumericTransform::raw;
  double mean = 0.0, stddev = 1.0;
  float missing_value = 0.0F;
  bool indicator = false;
};

struct BucketPlan {
  std::size_t raw = 0, sparse = 0;
  std::string name;
  std::vector<double> boundaries;
  Lookup lookup;
};

struct CategoryPlan {
  CategoricalFeature feature;
  std::uint64_t salt = 0;
  Vocabulary vocabulary;
  bool multi_value = false, weighted = false;
  Lookup lookup;

  bool id_of(std::string_view text, RowId& id, std::string& reason) const {
    switch (feature.encoding) {
      case CategoryEncoding::hash: {
        const std::uint64_t h = xxh64(text, salt);
        id = lookup.rows > 0 ? 1 + h % (lookup.rows - 1) : std::max<std::uint64_t>(h, 1);
        return true;
      }
      case CategoryEncoding::vocabulary: {
        const auto found = vocabulary.find(text);
        id = found == vocabulary.end() ? 1 : found->second;
        break;
      }
      case CategoryEncoding::identity: {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
        if (error != std::errc() || end != text.data() + text.size()) {
          reason = feature.name + ": " + shown(text) + " is no id (table " + lookup.table +
                   "; expected a decimal number of at most 64 bits)";
          return false;
        }
        break;
      }
    }
    return lookup.place(id, reason);
  }
};

float transformed(const DensePlan& plan, double x) noexcept {
  switch (plan.transform) {
    case NumericTransform::log1p: {
      // In float: about 1e-7 relative, twice as fast, and what the column holds anyway.
      const float y = std::log1p(std::fabs(static_cast<float>(x)));
      return x < 0.0 ? -y : y;
    }
    case NumericTransform::standardize:
      return static_cast<float>((x - plan.mean) / plan.stddev);
    case NumericTransform::raw:
    case NumericTransform::bucketize:
      break;
  }
  return static_cast<float>(x);
}

}  // namespace

struct RowEncoder::Plan {
  std::size_t num_dense = 0, num_numeric = 0, num_sparse = 0;
  std::vector<DensePlan> dense;
  std::vector<BucketPlan> buckets;
  std::vector<CategoryPlan> categories;  ///< categories[i] → Batch::sparse[i]

  bool encode_dense(const RawRow& row, float* out, std::string& reason) const;
  bool encode_category(const CategoryPlan& plan, const RawCategory& raw, SparseColumn& out,
                       std::string& reason) const;
  bool encode_bucket(const BucketPlan& plan, const RawRow& row, SparseColumn& out, std::string& reason) const;
  void roll_back(Batch& out) const noexcept;
};

RowEncoder::RowEncoder(const Config& config, const Schema& schema, const Statistics& statistics)
    : plan_(std::make_unique<Plan>()) {
  Plan& plan = *plan_;
  std::string problems;
  plan.num_dense = schema.num_dense();
  plan.num_numeric = config.features.numeric.size();
  plan.num_sparse = schema.num_sparse();

  const auto lookup_of = [&](const std::string& feature, std::size_t sparse) {
    HF_CHECK(sparse < schema.sparse.size(), "the schema is that of the config");
    const SparseFeature& s = schema.sparse[sparse];
    HF_CHECK(s.name == feature, "the schema is that of the config: " + s.name + ", " + feature);
    Lookup lookup{s.table, s.rows, config.embedding.wrap_ids};
    for (const auto& t : schema.tables)
      if (t.name == s.table && t.wrap_ids) lookup.wrap = *t.wrap_ids;
    return lookup;
  };

  for (std::size_t i = 0; i < config.features.categorical.size(); ++i) {
    const CategoricalFeature& f = config.features.categorical[i];
    CategoryPlan c;
    c.feature = f;
    c.lookup = lookup_of(f.name, i);
    c.multi_value = schema.sparse[i].multi_value;
    c.weighted = schema.sparse[i].weighted;
    c.salt = xxh64(c.lookup.table, 0);
    if (f.encoding == CategoryEncoding::hash && c.lookup.rows == 1)
      problems += "\n  " + f.name + ": table " + c.lookup.table + " has one row, hashing needs at least two";
    if (f.encoding == CategoryEncoding::vocabulary) {
      const auto found = statistics.vocabularies.find(f.name);
      if (found == statistics.vocabularies.end()) {
        problems +=
            "\n  " + f.name + ": data.statistics has no vocabulary of this feature (`convert` builds it)";
      } else {
        c.vocabulary.reserve(found->second.size());
        RowId id = 2;
        for (const auto& entry : found->second) c.vocabulary.emplace(entry, id++);
        if (c.lookup.rows > 0 && c.lookup.rows < id)
          problems += "\n  " + f.name + ": table " + c.lookup.table + " has " +
                      std::to_string(c.lookup.rows) + " rows, the vocabulary needs " + std::to_string(id);
      }
    }
    plan.categories.push_back(std::move(c));
  }

  std::size_t column = 0, sparse = config.features.categorical.size();
  for (std::size_t i = 0; i < plan.num_numeric; ++i) {
    const NumericFeature& f = config.features.numeric[i];
    if (f.transform == NumericTransform::bucketize) {
      BucketPlan b{i, sparse, f.name, f.boundaries, lookup_of(f.name, sparse)};
      ++sparse;
      std::sort(b.boundaries.begin(), b.boundaries.end());
      if (b.lookup.rows > 0 && b.lookup.rows < b.boundaries.size() + 2 && !b.lookup.wrap)
        problems += "\n  " + f.name + ": table " + b.lookup.table + " has " + std::to_string(b.lookup.rows) +
                    " rows, the buckets need " + std::to_string(b.boundaries.size() + 2);
      plan.buckets.push_back(std::move(b));
      continue;
    }
    DensePlan d{
        i, column, f.name, f.transform, 0.0, 1.0, static_cast<float>(f.missing_value), f.missing_indicator};
    column += f.missing_indicator ? 2 : 1;
    if (f.transform == NumericTransform::standardize) {
      const auto found = statistics.numeric.find(f.name);
      if (found != statistics.numeric.end()) {
        d.mean = found->second.mean;
        d.stddev = found->second.stddev;
      } else if (!f.mean || !f.stddev) {
        problems +=
            "\n  " + f.name + ": standardize needs mean and stddev, in the config or in data.statistics";
      }
      d.mean = f.mean.value_or(d.mean);
      d.stddev = f.stddev.value_or(d.stddev);
      if (!(d.stddev > 0.0)) problems += "\n  " + f.name + ": stddev must be above 0";
    }
    plan.dense.push_back(std::move(d));
  }
  if (!problems.empty()) throw ConfigError("features:" + problems);
  HF_CHECK(column == plan.num_dense && sparse == plan.num_sparse, "the schema is that of the config");
}

RowEncoder::~RowEncoder() = default;
RowEncoder::RowEncoder(RowEncoder&&) noexcept = default;
RowEncoder& RowEncoder::operator=(RowEncoder&&) noexcept = default;

void RowEncoder::prepare(Batch& batch) const {
  batch.clear();
  batch.num_dense = plan_->num_dense;
  batch.sparse.resize(plan_->num_sparse);
  for (std::size_t i = 0; i < plan_->categories.size(); ++i)
    if (plan_->categories[i].multi_value) batch.sparse[i].offsets.push_back(0);
}

bool RowEncoder::Plan::encode_dense(const RawRow& row, float* out, std::string& reason) const {
  for (const DensePlan& d : dense) {
    const std::string_view text = row.numeric[d.raw];
    const bool missing = is_missing(text);
    float value = d.missing_value;
    if (!missing) {
      const auto x = parse_number(text);
      if (!x) {
        reason = d.name + ": " + shown(text) + " is no finite number";
        return false;
      }
      value = transformed(d, *x);
      if (!std::isfinite(value)) {
        reason = d.name + ": " + shown(text) + " is too large for a float";
        return false;
      }
    }
    out[d.column] = value;
    if (d.indicator) out[d.column + 1] = missing ? 1.0F : 0.0F;
  }
  return true;
}

bool RowEncoder::Plan::encode_category(const CategoryPlan& plan, const RawCategory& raw, SparseColumn& out,
                                       std::string& reason) const {
  if (!plan.multi_value && is_missing(raw.text) && raw.values.empty()) {
    out.ids.push_back(0);
    return true;
  }
  bool good = true;
  const std::size_t before = out.ids.size();
  const bool derived = for_each_value(plan.feature, raw, reason, [&](std::string_view text, float weight) {
    RowId id = 0;
    if (!good || !plan.id_of(text, id, reason)) {
      good = false;
      return;
    }
    out.ids.push_back(id);
    if (plan.weighted) out.weights.push_back(weight);
  });
  if (!derived || !good) return false;
  if (!plan.multi_value) {
    HF_CHECK(out.ids.size() == before + 1, "a feature with several values is multi-value in the schema");
    return true;
  }
  if (out.ids.size() > std::numeric_limits<std::uint32_t>::max()) {
    reason = plan.feature.name + ": the batch would have more than 2^32 values of this feature";
    return false;
  }
  out.offsets.push_back(static_cast<std::uint32_t>(out.ids.size()));
  return true;
}

bool RowEncoder::Plan::encode_bucket(const BucketPlan& plan, const RawRow& row, SparseColumn& out,
                                     std::string& reason) const {
  RowId id = 0;
  if (const std::string_view text = row.numeric[plan.raw]; !is_missing(text)) {
    const auto x = parse_number(text);
    if (!x) {
      reason = plan.name + ": " + shown(text) + " is no finite number";
      return false;
    }
    const auto above = std::upper_bound(plan.boundaries.begin(), plan.boundaries.end(), *x);
    id = 1 + static_cast<RowId>(above - plan.boundaries.begin());
  }
  if (!plan.lookup.place(id, reason)) return false;
  out.ids.push_back(id);
  return true;
}

void RowEncoder::Plan::roll_back(Batch& out) const noexcept {
  out.dense.resize(out.rows * num_dense);
  for (std::size_t i = 0; i < out.sparse.size(); ++i) {
    SparseColumn& c = out.sparse[i];
    const bool bags = i < categories.size() && categories[i].multi_value;
    if (bags) c.offsets.resize(out.rows + 1);
    c.ids.resize(bags ? c.offsets[out.rows] : out.rows);
    if (!c.weights.empty()) c.weights.resize(c.ids.size());
  }
}

bool RowEncoder::encode(const RawRow& row, Batch& out, std::string& reason) {
  const Plan& plan = *plan_;
  HF_ASSERT(out.sparse.size() == plan.num_sparse && out.num_dense == plan.num_dense);
  HF_CHECK(row.numeric.size() == plan.num_numeric && row.categorical.size() == plan.categories.size(),
           "the row is one of the config's features");
  out.dense.resize((out.rows + 1) * plan.num_dense);
  bool good = plan.encode_dense(row, out.dense.data() + out.rows * plan.num_dense, reason);
  for (std::size_t i = 0; good && i < plan.categories.size(); ++i)
    good = plan.encode_category(plan.categories[i], row.categorical[i], out.sparse[i], reason);
  for (std::size_t i = 0; good && i < plan.buckets.size(); ++i)
    good = plan.encode_bucket(plan.buckets[i], row, out.sparse[plan.buckets[i].sparse], reason);
  if (!good) {
    plan.roll_back(out);
    return false;
  }
  if (row.label && out.labels.size() == out.rows)
    out.labels.push_back(*row.label);
  else
    out.labels.clear();
  ++out.rows;
  return true;
}

std::optional<double> parse_number(std::string_view text) noexcept {
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  // Most numbers of click logs are short integers, which are exact in a double up to 15 digits.
  if (at != end && end - at <= 15) {
    std::uint64_t n = 0;
    const char* p = at;
    for (; p != end && *p >= '0' && *p <= '9'; ++p) n = n * 10 + static_cast<std::uint64_t>(*p - '0');
    if (p == end) return negative ? -static_cast<double>(n) : static_cast<double>(n);
  }
  double x = 0.0;
  const auto [stop, error] = std::from_chars(text.data(), end, x);
  if (error != std::errc() || stop != end || !std::isfinite(x)) return std::nullopt;
  return x;
}

std::optional<std::string_view> derive_text(std::string_view derive, std::string_view text) noexcept {
  if (derive.empty()) return text;
  if (text.size() != 8 || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto two = [&](std::size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
  const int year = two(0), month = two(2), day = two(4), hour = two(6);
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12 || hour > 23 || day < 1) return std::nullopt;
  if (day > kDays[month - 1] + (month == 2 && year % 4 == 0 ? 1 : 0)) return std::nullopt;
  const auto number_at = [&](std::size_t at) {
    return text[at] == '0' ? text.substr(at + 1, 1) : text.substr(at, 2);
  };
  if (derive == "hour_of_day") return number_at(6);
  if (derive == "day") return number_at(4);
  if (derive == "day_of_week") {
    // Days since 2000-01-01, a Saturday; years 2000 … 2099, in which every fourth one is a leap year.
    int days = year * 365 + (year + 3) / 4 + day - 1;
    for (int m = 1; m < month; ++m) days += kDays[m - 1] + (m == 2 && year % 4 == 0 ? 1 : 0);
    return std::string_view("0123456").substr(static_cast<std::size_t>((days + 5) % 7), 1);
  }
  return std::nullopt;
}

}  // namespace hf
