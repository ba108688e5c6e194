#include "core/config_check.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/schema.hpp"
#include "core/suggest.hpp"

namespace hf {
namespace {

bool is_sparse_text(DataFormat format) {
  return format == DataFormat::libsvm || format == DataFormat::libfm || format == DataFormat::libffm;
}

/// "I7" with prefix 'I' and last 13 → true.
bool is_numbered(const std::string& name, char prefix, int last) {
  int number = 0;
  const char* const end = name.data() + name.size();
  if (name.size() < 2 || name[0] != prefix || name[1] == '0') return false;
  const auto [ptr, ec] = std::from_chars(name.data() + 1, end, number);
  return ec == std::errc() && ptr == end && number >= 1 && number <= last;
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  const std::string near = nearest_name(word, names);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

class Checker {
 public:
  Checker(const Config& config, const Positions& positions, Problems& problems)
      : c_(config), positions_(positions), problems_(problems) {}

  void run() {
    check_data();
    check_split();
    if (c_.data.format == DataFormat::csv) check_csv();
    check_tables();
    check_features();
    check_optimizer();
    check_cluster();
  }

 private:
  void add(const std::string& path, const std::string& message) {
    if (!positions_.is_failed(path)) problems_.add(positions_.where(path), path, message);
  }

  void check_data() {
    const DataConfig& d = c_.data;
    if (d.shuffle && d.format != DataFormat::packed)
      add("data.shuffle",
          std::string("rows of format ") + to_string(d.format) +
              " come in file order; write them with `hyperframes convert` and train with data.format: "
              "packed to shuffle");
    if (c_.workdir.empty()) add("workdir", "expected a directory, found an empty text");
    for (const auto& [key, files] :
         {std::pair{"data.train", &d.train}, {"data.validation", &d.validation}, {"data.test", &d.test}})
      if (contains(*files, "")) add(key, "an empty file name");
  }

  void check_split() {
    const SplitConfig& s = c_.data.split;
    const std::string path = "data.split.";
    const auto without_effect = [&](const char* key, bool set, const char* by) {
      if (set) add(path + key, std::string("has an effect with data.split.by: ") + by + " only");
    };
    if (s.by != SplitBy::ratio) {
      without_effect("validation_ratio", s.validation_ratio > 0, "ratio");
      without_effect("test_ratio", s.test_ratio > 0, "ratio");
    }
    if (s.by != SplitBy::column) {
      without_effect("column", !s.column.empty(), "column");
      without_effect("derive", !s.derive.empty(), "column");
      without_effect("validation_values", !s.validation_values.empty(), "column");
      without_effect("test_values", !s.test_values.empty(), "column");
    }
    const bool validation = s.by == SplitBy::ratio ? s.validation_ratio > 0 : !s.validation_values.empty();
    const bool test = s.by == SplitBy::ratio ? s.test_ratio > 0 : !s.test_values.empty();
    if (s.by == SplitBy::file) return;
    if (!validation && !test)
      add(path + "by", s.by == SplitBy::ratio ? "needs validation_ratio or test_ratio above 0"
                                              : "needs validation_values or test_values");
    if (validation && !c_.data.validation.empty())
      add("data.validation", "files, although data.split takes the validation rows out of data.train");
    if (test && !c_.data.test.empty())
      add("data.test", "files, although data.split takes the test rows out of data.train");
    if (s.by == SplitBy::ratio && s.validation_ratio + s.test_ratio >= 1)
      add(path + "validation_ratio",
          "validation_ratio + test_ratio must be below 1 to leave rows to train on");
    if (s.by != SplitBy::column) return;
    if (s.column.empty()) add(path + "column", "missing: data.split.by: column needs the name of a column");
    if (s.derive != "" && s.derive != "day")
      add(path + "derive", "expected \"\" or day, found \"" + s.derive + '"');
    for (const std::string& value : s.test_values)
      if (contains(s.validation_values, value))
        add(path + "test_values", "\"" + value + "\" is in validation_values too");
    if (c_.data.format != DataFormat::csv && c_.data.format != DataFormat::criteo)
      add(path + "by", std::string("format ") + to_string(c_.data.format) + " has no columns to split by");
    const CsvConfig& csv = c_.data.csv;
    if (c_.data.format == DataFormat::csv && !csv.header && !s.column.empty() &&
        !contains(csv.columns, s.column)) {
      std::size_t number = 0;
      const char* const end = s.column.data() + s.column.size();
      const auto [ptr, ec] = std::from_chars(s.column.data(), end, number);
      if (ec != std::errc() || ptr != end || number < 1 || number > csv.columns.size())
        add(path + "column",
            "no column \"" + s.column + "\" in data.csv.columns" + suggestion(s.column, csv.columns));
    }
  }

  void check_csv() {
    const CsvConfig& csv = c_.data.csv;
    const std::string path = "data.csv.";
    if (csv.delimiter != "tab" && csv.delimiter != "\\t" &&
        (csv.delimiter.size() != 1 || csv.delimiter == "\"" || csv.delimiter == "\n" ||
         csv.delimiter == "\r"))
      add(path + "delimiter",
          "expected one character that is no quote or line end, or tab; found \"" + csv.delimiter + '"');
    if (!csv.header && csv.columns.empty())
      add(path + "columns", "missing: header is false, so the columns need names");
    if (csv.header && !csv.columns.empty())
      add(path + "columns", "given, although the names come from the header (data.csv.header is true)");
    for (std::size_t i = 0; i < csv.columns.size(); ++i) {
      const auto here = csv.columns.begin() + static_cast<std::ptrdiff_t>(i);
      if (here->empty()) add(path + "columns", "an empty name");
      if (std::find(csv.columns.begin(), here, *here) != here)
        add(path + "columns", "duplicate name \"" + *here + '"');
    }
    if (!csv.header && !csv.label.empty()) check_column(path + "label", csv.label);
    if (csv.positive.empty()) add(path + "positive", "empty: no label text means 1");
    for (const std::string& text : csv.negative)
      if (contains(csv.positive, text)) add(path + "negative", "\"" + text + "\" is in positive too");
  }

  void check_column(const std::string& path, const std::string& column) {
    const CsvConfig& csv = c_.data.csv;
    if (!csv.columns.empty() && !contains(csv.columns, column))
      add(path, "no column \"" + column + "\" in data.csv.columns" + suggestion(column, csv.columns));
  }

  void check_tables() {
    Names names;
    for (std::size_t i = 0; i < c_.tables.size(); ++i) {
      const TableConfig& t = c_.tables[i];
      const std::string path = positions_.item_path("tables", i);
      if (t.name.empty())
        add(path + ".name", "missing: a table needs a name");
      else
        check_table_name(path + ".name", t.name);
      if (!t.name.empty()) check_once(path + ".name", "table", t.name, names);
      const bool dynamic = t.kind.value_or(c_.embedding.kind) == TableKind::dynamic;
      if (!dynamic && t.rows < 2)
        add(path + ".rows", t.rows == 0
                                ? "missing: a static table needs its number of rows (or kind: dynamic)"
                                : "a static table needs at least 2 rows");
      if (t.kind == TableKind::dynamic && t.rows > 0)
        add(path + ".rows", "a dynamic table has no fixed number of rows");
      table_names_.push_back(t.name);
    }
  }

  using Names = std::map<std::string, std::string>;  // by table_name_key

  bool check_once(const std::string& path, const char* what, const std::string& name, Names& names) {
    const auto [first, is_new] = names.emplace(table_name_key(name), name);
    if (!is_new)
      add(path, std::string("duplicate ") + what + " \"" + name + '"' +
                    (first->second == name
                         ? ""
                         : ": \"" + first->second +
                               "\" differs in upper and lower case only, which file systems may ignore"));
    return is_new;
  }

  /// Tables and features, which have a table of their name each.
  void check_table_name(const std::string& path, const std::string& name) {
    const std::string problem = table_name_problem(name);
    if (!problem.empty()) add(path, problem + "; choose another name (a feature's `column` may be any)");
    // src/model: the linear weights of a table have a table of their own.
    if (table_name_key(name).ends_with(".wide"))
      add(path, "\"" + name + "\" is reserved: linear weights are stored under names that end in .wide");
  }

  const TableConfig* find_table(const std::string& name) const {
    for (const TableConfig& t : c_.tables)
      if (t.name == name) return &t;
    return nullptr;
  }

  /// A shared table of this name, or of one that differs in upper and lower case only.
  const TableConfig* find_table_like(const std::string& name) const {
    for (const TableConfig& t : c_.tables)
      if (table_name_key(t.name) == table_name_key(name)) return &t;
    return nullptr;
  }

  /// Returns the shared table or nullptr (own table, or an unknown one, which is reported).
  const TableConfig* check_table_use(const std::string& path, const std::string& feature,
                                     const std::string& table, bool has_dim) {
    if (table.empty()) {
      const TableConfig* like = find_table_like(feature);
      if (like != nullptr && !positions_.any_failed_below("tables"))
        add(path + ".name", "the feature's own table would have the name of the shared table \"" +
                                like->name + "\"; to use that one write table: " + like->name);
      return nullptr;
    }
    const TableConfig* shared = find_table(table);
    if (shared == nullptr) {
      if (!positions_.any_failed_below("tables"))
        add(path + ".table", "no table \"" + table + "\" in tables" + suggestion(table, table_names_));
    } else if (has_dim) {
      add(path + ".dim", "the width of a shared table belongs to tables[].dim");
    }
    return shared;
  }

  void check_name(const std::string& path, const std::string& name) {
    if (name.empty())
      add(path + ".name", "missing: a feature needs a name");
    else if (check_once(path + ".name", "feature", name, feature_names_))
      check_table_name(path + ".name", name);
  }

  void check_numeric(const NumericFeature& f, const std::string& path) {
    const bool bucketize = f.transform == NumericTransform::bucketize;
    const auto only = [&](const char* key, bool set, const char* transform) {
      if (set) add(path + "." + key, std::string("has an effect with transform: ") + transform + " only");
    };
    if (f.transform != NumericTransform::standardize) {
      only("mean", f.mean.has_value(), "standardize");
      only("stddev", f.stddev.has_value(), "standardize");
    } else if (f.mean.has_value() != f.stddev.has_value()) {
      add(path + (f.mean ? ".stddev" : ".mean"), "missing: mean and stddev come together");
    }
    if (!bucketize) {
      only("boundaries", !f.boundaries.empty(), "bucketize");
      only("table", !f.table.empty(), "bucketize");
      only("dim", f.dim.has_value(), "bucketize");
      if (f.missing_indicator &&
          !feature_names_.emplace(table_name_key(f.name) + ".missing", f.name + ".missing").second)
        add(path + ".missing_indicator", "there is a feature \"" + f.name + ".missing\" already");
    } else {
      if (f.boundaries.empty()) add(path + ".boundaries", "missing: transform: bucketize needs them");
      for (std::size_t i = 1; i < f.boundaries.size(); ++i)
        if (!(f.boundaries[i - 1] < f.boundaries[i])) {
          add(path + ".boundaries", "must rise strictly");
          break;
        }
      if (f.missing_indicator)
        add(path + ".missing_indicator", "a bucketised feature has a bucket for missing values");
      if (f.missing_value != 0)
        add(path + ".missing_value", "a bucketised feature has a bucket for missing values");
      const TableConfig* shared = check_table_use(path, f.name, f.table, f.dim.has_value());
      if (shared != nullptr && shared->kind.value_or(c_.embedding.kind) == TableKind::static_rows &&
          shared->rows < f.boundaries.size() + 2)
        add(path + ".table", "needs " + std::to_string(f.boundaries.size() + 2) +
                                 " rows (boundaries + 2), the table has " + std::to_string(shared->rows));
    }
    const std::string& column = f.column.empty() ? f.name : f.column;
    const char* key = f.column.empty() ? ".name" : ".column";
    if (c_.data.format == DataFormat::csv && !c_.data.csv.header && !column.empty())
      check_column(path + key, column);
    if (c_.data.format == DataFormat::criteo && !column.empty() && !is_numbered(column, 'I', 13))
      add(path + key, "no numeric column \"" + column + "\" in format criteo (expected I1 … I13)");
  }

  void check_categorical(const CategoricalFeature& f, const std::string& path) {
    const bool vocabulary = f.encoding == CategoryEncoding::vocabulary;
    const DataFormat format = c_.data.format;
    if (!vocabulary) {
      if (f.min_count != 1) add(path + ".min_count", "has an effect with encoding: vocabulary only");
      if (f.max_vocabulary != 0)
        add(path + ".max_vocabulary", "has an effect with encoding: vocabulary only");
    } else {
      if (f.buckets != 0) add(path + ".buckets", "the vocabulary decides the number of rows");
      if (!f.table.empty())
        add(path + ".table", "a vocabulary belongs to one feature; it cannot use a shared table");
    }
    if (f.buckets == 1) add(path + ".buckets", "needs at least 2: one is for missing values");
    if (f.buckets != 0 && !f.table.empty())
      add(path + ".buckets", "the shared table decides the number of rows");
    check_table_use(path, f.name, f.table, f.dim.has_value());

    static const std::vector<std::string> kDerivations = {"hour_of_day", "day_of_week", "day"};
    if (!f.derive.empty()) {
      if (!contains(kDerivations, f.derive))
        add(path + ".derive", "expected \"\", hour_of_day, day_of_week or day, found \"" + f.derive + '"' +
                                  suggestion(f.derive, kDerivations));
      if (!f.separator.empty()) add(path + ".separator", "a derived feature has one value");
      if (format != DataFormat::csv && format != DataFormat::packed)
        add(path + ".derive", std::string("format ") + to_string(format) + " has no column of timestamps");
    }
    if (!f.separator.empty() && is_sparse_text(format))
      add(path + ".separator",
          std::string("format ") + to_string(format) + " has multi-value features by itself");
    if (!f.separator.empty() && format == DataFormat::csv && f.separator == c_.data.csv.delimiter)
      add(path + ".separator", "is data.csv.delimiter too");
    const std::string& column = f.column.empty() ? f.name : f.column;
    const char* key = f.column.empty() ? ".name" : ".column";
    if (format == DataFormat::csv && !c_.data.csv.header && !column.empty()) check_column(path + key, column);
    if (format == DataFormat::criteo && !column.empty() && !is_numbered(column, 'C', 26))
      add(path + key, "no categorical column \"" + column + "\" in format criteo (expected C1 … C26)");
  }

  void check_features() {
    const FeaturesConfig& f = c_.features;
    if (f.numeric.empty() && f.categorical.empty() && !positions_.any_failed_below("features"))
      add("features", "missing: a model needs at least one numeric or categorical feature");
    for (std::size_t i = 0; i < f.numeric.size(); ++i) {
      check_name(positions_.item_path("features.numeric", i), f.numeric[i].name);
      check_numeric(f.numeric[i], positions_.item_path("features.numeric", i));
    }
    for (std::size_t i = 0; i < f.categorical.size(); ++i) {
      check_name(positions_.item_path("features.categorical", i), f.categorical[i].name);
      check_categorical(f.categorical[i], positions_.item_path("features.categorical", i));
    }
    if (!is_sparse_text(c_.data.format)) return;
    const std::string format = to_string(c_.data.format);
    if (!f.numeric.empty()) add("features.numeric", "format " + format + " has categorical features only");
    if (c_.data.format != DataFormat::libffm && f.categorical.size() > 1)
      add("features.categorical",
          "format " + format + " has exactly one feature, found " + std::to_string(f.categorical.size()));
  }

  void check_optimizer() {
    const DenseOptimizerConfig& o = c_.optimizer;
    if (o.decay == DecayKind::none) return;
    if (o.decay_steps == 0)
      add("optimizer.decay_steps", "missing: optimizer.decay needs the step at which it ends");
    else if (o.decay_steps <= o.warmup_steps)
      add("optimizer.decay_steps", "must be above warmup_steps (" + std::to_string(o.warmup_steps) +
                                       "), found " + std::to_string(o.decay_steps));
    if (o.decay == DecayKind::exponential && o.decay_final <= 0)
      add("optimizer.decay_final", "exponential decay needs a factor above 0");
  }

  void check_cluster() {
    const ClusterConfig& k = c_.cluster;
    if (k.ps && k.ps_ratio) add("cluster.ps_ratio", "cluster.ps is given too; choose one of them");
    if (k.role != RoleChoice::automatic && (k.ps || k.ps_ratio))
      add("cluster.role", std::string("given together with cluster.") + (k.ps ? "ps" : "ps_ratio") +
                              "; choose the roles of the ranks by one of them");
  }

  const Config& c_;
  const Positions& positions_;
  Problems& problems_;
  Names feature_names_;
  std::vector<std::string> table_names_;
};

}  // namespace

std::string Positions::where(const std::string& path) const {
  for (std::string at = path; !at.empty();) {
    const auto found = given.find(at);
    if (found != given.end()) return found->second.where;
    const std::size_t cut = at.find_last_of(".[");
    at = cut == std::string::npos ? "" : at.substr(0, cut);
  }
  return source + ":1";
}

bool Positions::is_failed(const std::string& path) const {
  for (std::string at = path; !at.empty();) {
    if (failed.contains(at)) return true;
    const std::size_t cut = at.find_last_of(".[");
    at = cut == std::string::npos ? "" : at.substr(0, cut);
  }
  return false;
}

bool Positions::any_failed_below(const std::string& path) const {
  const auto first = failed.lower_bound(path);
  return first != failed.end() && first->starts_with(path);
}

std::string Positions::item_path(const std::string& list, std::size_t index) const {
  const auto found = item_paths.find(list);
  return found != item_paths.end() && index < found->second.size() ? found->second[index]
                                                                   : list + "[" + std::to_string(index) + "]";
}

void check_config(const Config& config, const Positions& positions, Problems& problems) {
  Checker(config, positions, problems).run();
}

std::vector<std::string> statistics_problems(const Config& config) {
  std::vector<std::string> problems;
  if (config.data.format == DataFormat::packed || !config.data.statistics.empty()) return problems;
  const std::string remedy = " needs data.statistics, which `hyperframes convert` writes";
  for (const NumericFeature& f : config.features.numeric)
    if (f.transform == NumericTransform::standardize && !(f.mean && f.stddev))
      problems.push_back("features.numeric: " + f.name + ": transform standardize without mean and stddev" +
                         remedy);
  for (const CategoricalFeature& f : config.features.categorical)
    if (f.encoding == CategoryEncoding::vocabulary)
      problems.push_back("features.categorical: " + f.name + ": encoding vocabulary" + remedy);
  return problems;
}

}  // namespace hf
