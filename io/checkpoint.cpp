#include "io/checkpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <span>

#include "codec/crc32c.hpp"
#include "core/error.hpp"
#include "io/atomic_file.hpp"
#include "io/hdf5.hpp"

namespace hf {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShardFormat = "hyperframes-shard";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kSlabRows = 4096;

std::string hex8(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

std::string group_of(std::uint64_t table) { return "/table_" + std::to_string(table); }

[[noreturn]] void mismatch(const std::string& where, const std::string& what, const std::string& expected,
                           const std::string& found) {
  throw FormatError(where + ": " + what + ": expected " + expected + ", found " + found);
}

struct Measured {
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

Measured measure(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError(path + ": cannot open: " + std::strerror(errno));
  std::vector<char> buffer(1u << 20);
  Measured m;
  for (;;) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto n = static_cast<std::size_t>(in.gcount());
    m.crc32c = crc32c(buffer.data(), n, m.crc32c);
    m.bytes += n;
    if (in.bad()) throw IoError(path + ": cannot read: " + std::strerror(errno));
    if (!in) return m;
  }
}

TableSpec spec_from(const nlohmann::json& j, const std::string& where) {
  try {
    return j.get<TableSpec>();
  } catch (const FormatError& e) {
    throw FormatError(where + ": " + e.what());
  }
}

TableSpec stored_spec(const h5::File& file, const std::string& group) {
  const std::string where = file.path() + ": " + group + "@spec";
  const auto j = nlohmann::json::parse(file.text_attribute(group, "spec"), nullptr, false);
  if (j.is_discarded()) throw FormatError(where + ": expected JSON");
  return spec_from(j, where);
}

/// What must agree for records to mean the same. Hyper-parameters and initial values may differ.
void check_compatible(const TableSpec& expected, const TableSpec& found, const std::string& path) {
  const std::string where = path + ": table " + expected.name;
  if (expected.kind != found.kind) mismatch(where, "kind", to_string(expected.kind), to_string(found.kind));
  if (expected.rows != found.rows)
    mismatch(where, "rows", std::to_string(expected.rows), std::to_string(found.rows));
  if (expected.dim != found.dim)
    mismatch(where, "dim", std::to_string(expected.dim), std::to_string(found.dim));
  if (expected.optimizer.kind != found.optimizer.kind)
    mismatch(where, "optimizer", to_string(expected.optimizer.kind), to_string(found.optimizer.kind));
}

bool holds(const Table& table, ShardId shard) {
  return std::find(table.shards().begin(), table.shards().end(), shard) != table.shards().end();
}

std::uint64_t write_table(h5::File& file, const std::string& group, ShardId shard, const Table& table) {
  const std::uint64_t width = table.record_floats();
  file.create_group(group);
  const std::uint64_t chunk = std::clamp<std::uint64_t>(65536 / width, 1, 16384);
  h5::Dataset ids = file.create_dataset(group + "/ids", h5::Type::u64, {1, 16384, false});
  h5::Dataset records = file.create_dataset(group + "/records", h5::Type::f32, {width, chunk, false});
  std::vector<RowId> slab_ids;
  std::vector<float> slab;
  slab_ids.reserve(kSlabRows);
  slab.reserve(kSlabRows * width);
  const auto flush = [&] {
    ids.append(slab_ids.data(), slab_ids.size());
    records.append(slab.data(), slab_ids.size());
    slab_ids.clear();
    slab.clear();
  };
  table.for_each_row(shard, [&](RowId id, std::span<const float> record) {
    slab_ids.push_back(id);
    slab.insert(slab.end(), record.begin(), record.end());
    if (slab_ids.size() == kSlabRows) flush();
  });
  flush();
  const nlohmann::json spec = table.spec();
  file.set_attribute(group, "name", table.spec().name);
  file.set_attribute(group, "spec", spec.dump());
  file.set_attribute(group, "rows", ids.rows());
  return ids.rows();
}

/// The step of "step_N", or nothing for another name.
bool parse_step(const std::string& name, Step& step) {
  constexpr std::string_view kPrefix = "step_";
  if (!name.starts_with(kPrefix)) return false;
  const std::string digits = name.substr(kPrefix.size());
  if (digits.empty() || digits.size() > 19 || digits.find_first_not_of("0123456789") != std::string::npos)
    return false;
  step = std::stoull(digits);
  return true;
}

std::string step_name(Step step) {
  char name[32];
  std::snprintf(name, sizeof name, "step_%09llu", static_cast<unsigned long long>(step));
  return name;
}

std::string last_component(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

}  // namespace

std::string step_directory(const std::string& checkpoint_dir, Step step) {
  return checkpoint_dir + "/" + step_name(step);
}

std::string shard_file_name(ShardId shard) {
  char name[32];
  std::snprintf(name, sizeof name, "shard_%05u.full.h5", shard.value);
  return name;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

ShardFile write_shard(const std::string& step_dir, ShardId shard, const std::vector<const Table*>& tables) {
  make_directories(step_dir);
  ShardFile result;
  result.name = shard_file_name(shard);
  AtomicFile atomic(step_dir + "/" + result.name);
  {
    h5::File file = h5::File::create(atomic.temporary_path());
    for (std::size_t t = 0; t < tables.size(); ++t) {
      HF_CHECK(holds(*tables[t], shard), "table " + tables[t]->spec().name + " holds the shard");
      result.rows += write_table(file, group_of(t), shard, *tables[t]);
    }
    file.set_attribute("/", "format", std::string(kShardFormat));
    file.set_attribute("/", "format_version", kVersion);
    file.set_attribute("/", "shard", static_cast<std::uint64_t>(shard.value));
    file.set_attribute("/", "tables", static_cast<std::uint64_t>(tables.size()));
    file.close();
  }
  const Measured m = measure(atomic.temporary_path());
  result.bytes = m.bytes;
  result.crc32c = m.crc32c;
  atomic.commit();
  return result;
}

void read_shard(const std::string& step_dir, const ShardFile& expected, const std::vector<Table*>& tables) {
  const std::string path = step_dir + "/" + expected.name;
  const Measured m = measure(path);
  if (m.bytes != expected.bytes)
    mismatch(path, "bytes", std::to_string(expected.bytes), std::to_string(m.bytes));
  if (m.crc32c != expected.crc32c) mismatch(path, "crc32c", hex8(expected.crc32c), hex8(m.crc32c));

  const h5::File file = h5::File::open(path);
  if (const auto format = file.text_attribute("/", "format"); format != kShardFormat)
    mismatch(path, "format", kShardFormat, format);
  if (const auto version = file.integer_attribute("/", "format_version"); version != kVersion)
    mismatch(path, "format_version", std::to_string(kVersion), std::to_string(version));
  const ShardId shard(static_cast<std::uint32_t>(file.integer_attribute("/", "shard")));
  if (shard_file_name(shard) != expected.name)
    mismatch(path, "shard file", shard_file_name(shard), expected.name);

  const std::uint64_t stored_tables = file.integer_attribute("/", "tables");
  std::uint64_t total_rows = 0;
  std::vector<std::string> names;
  for (std::uint64_t t = 0; t < stored_tables; ++t) {
    names.push_back(file.text_attribute(group_of(t), "name"));
    total_rows += file.integer_attribute(group_of(t), "rows");
  }
  if (total_rows != expected.rows)
    mismatch(path, "rows", std::to_string(expected.rows), std::to_string(total_rows));

  // Everything is checked before anything is restored.
  std::vector<std::string> groups;
  for (const Table* table : tables) {
    const TableSpec& spec = table->spec();
    HF_CHECK(holds(*table, shard), "table " + spec.name + " holds the shard");
    const auto found = std::find(names.begin(), names.end(), spec.name);
    if (found == names.end()) {
      std::string all;
      for (const auto& n : names) all += (all.empty() ? "" : ", ") + n;
      mismatch(path, "tables", spec.name, all.empty() ? "none" : all);
    }
    groups.push_back(group_of(static_cast<std::uint64_t>(found - names.begin())));
    check_compatible(spec, stored_spec(file, groups.back()), path);
  }
  std::vector<RowId> ids;
  std::vector<float> records;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const std::uint64_t width = tables[t]->record_floats(), rows = file.integer_attribute(groups[t], "rows");
    const h5::Dataset stored_ids = file.open_dataset(groups[t] + "/ids", h5::Type::u64, 1);
    const h5::Dataset stored = file.open_dataset(groups[t] + "/records", h5::Type::f32, width);
    for (const h5::Dataset* d : {&stored_ids, &stored})
      if (d->rows() != rows)
        mismatch(path + ": " + groups[t], "rows", std::to_string(rows), std::to_string(d->rows()));
    for (std::uint64_t first = 0; first < rows; first += kSlabRows) {
      const std::uint64_t n = std::min<std::uint64_t>(kSlabRows, rows - first);
      ids.resize(n);
      records.resize(n * width);
      stored_ids.read(first, n, ids.data());
      stored.read(first, n, records.data());
      tables[t]->restore(ids, records.data());
    }
  }
}

void write_manifest(const std::string& step_dir, const Manifest& manifest) {
  make_directories(step_dir);
  nlohmann::json shards = nlohmann::json::array();
  for (const ShardFile& s : manifest.shards)
    shards.push_back({{"name", s.name}, {"bytes", s.bytes}, {"crc32c", hex8(s.crc32c)}, {"rows", s.rows}});
  const nlohmann::json inner = {{"format_version", kVersion},
                                {"step", manifest.step},
                                {"num_shards", manifest.num_shards},
                                {"config_hash", manifest.config_hash},
                                {"version", manifest.version},
                                {"created", manifest.created},
                                {"tables", manifest.tables},
                                {"shards", shards},
                                {"dense_layout", manifest.dense_layout}};
  const std::string text = inner.dump();
  const nlohmann::json all = {{"crc32c", hex8(crc32c(text.data(), text.size()))}, {"manifest", inner}};
  write_file_atomically(step_dir + "/manifest.json", all.dump(1) + "\n");
}

Manifest read_manifest(const std::string& step_dir) {
  const std::string path = step_dir + "/manifest.json";
  Manifest m;
  try {
    const auto all = nlohmann::json::parse(read_small_file(path));
    const auto& inner = all.at("manifest");
    const std::string text = inner.dump(), found = hex8(crc32c(text.data(), text.size()));
    if (const auto expected = all.at("crc32c").get<std::string>(); expected != found)
      mismatch(path, "crc32c", expected, found);
    if (const auto version = inner.at("format_version").get<std::uint64_t>(); version != kVersion)
      mismatch(path, "format_version", std::to_string(kVersion), std::to_string(version));
    m.step = inner.at("step").get<Step>();
    m.num_shards = inner.at("num_shards").get<std::uint32_t>();
    m.config_hash = inner.at("config_hash").get<std::string>();
    m.version = inner.at("version").get<std::string>();
    m.created = inner.at("created").get<std::string>();
    m.dense_layout = inner.at("dense_layout");
    for (const auto& t : inner.at("tables")) m.tables.push_back(spec_from(t, path));
    for (const auto& s : inner.at("shards"))
      m.shards.push_back(
          {s.at("name").get<std::string>(), s.at("bytes").get<std::uint64_t>(),
           static_cast<std::uint32_t>(std::stoul(s.at("crc32c").get<std::string>(), nullptr, 16)),
           s.at("rows").get<std::uint64_t>()});
  } catch (const nlohmann::json::exception& e) {
    throw FormatError(path + ": damaged: " + e.what());
  } catch (const std::logic_error& e) {  // stoul
    throw FormatError(path + ": damaged: crc32c: expected 8 hex digits");
  }
  const std::string name = last_component(step_dir);
  if (name.starts_with("step_") && name != step_name(m.step))
    mismatch(path, "step directory", step_name(m.step), name);
  return m;
}

void publish_latest(const std::string& checkpoint_dir, Step step) {
  HF_CHECK(exists(step_directory(checkpoint_dir, step) + "/manifest.json"),
           "the manifest is written before `latest`");
  write_file_atomically(checkpoint_dir + "/latest", step_name(step) + "\n");
}

std::string resolve_checkpoint(const std::string& checkpoint_dir, const std::string& which) {
  if (which != "latest") {
    if (exists(which + "/manifest.json")) return which;
    if (exists(which + "/latest")) return resolve_checkpoint(which, "latest");
    throw IoError(which +
                  ": no checkpoint: expected manifest.json (a step directory) or latest (a checkpoint "
                  "directory) inside");
  }
  const std::string path = checkpoint_dir + "/latest";
  if (!exists(path)) throw IoError(path + ": no checkpoint there: the file does not exist");
  std::string name = read_small_file(path, 4096);
  while (!name.empty() && (name.back() == '\n' || name.back() == '\r')) name.pop_back();
  Step step = 0;
  if (!parse_step(name, step) || name != step_name(step))
    mismatch(path, "name of a step directory", "step_NNNNNNNNN", "\"" + name.substr(0, 60) + "\"");
  const std::string directory = checkpoint_dir + "/" + name;
  if (!exists(directory + "/manifest.json"))
    mismatch(path, "complete checkpoint", directory + "/manifest.json", "no such file");
  return directory;
}

}  // namespace hf
