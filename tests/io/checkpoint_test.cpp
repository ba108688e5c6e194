#include "io/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "io/atomic_file.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::uint32_t kShards = 4;

TableSpec spec(const std::string& name, TableKind kind, OptimizerKind optimizer, std::uint32_t dim = 4) {
  TableSpec s;
  s.name = name;
  s.kind = kind;
  s.rows = kind == TableKind::static_rows ? 1000 : 0;
  s.dim = dim;
  s.optimizer.kind = optimizer;
  return s;
}

std::vector<ShardId> all_shards() {
  std::vector<ShardId> out;
  for (std::uint32_t s = 0; s < kShards; ++s) out.emplace_back(s);
  return out;
}

Table make_table(const TableSpec& s) { return Table(s, kShards, all_shards()); }

/// Some training, so that weights and state are no initial values.
void train(Table& table, std::uint64_t rows) {
  std::vector<RowId> ids;
  std::vector<float> grads;
  const bool dynamic = table.spec().kind == TableKind::dynamic;
  for (std::uint64_t i = 0; i < rows; ++i) {
    ids.push_back(dynamic ? i * 0x9e3779b97f4a7c15ULL : i * 7 % 1000);
    for (std::uint32_t c = 0; c < table.spec().dim; ++c)
      grads.push_back(static_cast<float>(i % 13) - 5.5F + static_cast<float>(c));
  }
  table.apply(ids, grads.data(), {.learning_rate = 0.1F, .grad_scale = 0.5F, .step = 1});
}

using Rows = std::vector<std::pair<RowId, std::vector<float>>>;
Rows rows_of(const Table& table, ShardId shard) {
  Rows out;
  table.for_each_row(shard, [&](RowId id, std::span<const float> r) {
    out.emplace_back(id, std::vector<float>(r.begin(), r.end()));
  });
  return out;
}

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

void flip_byte(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char c = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(c ^ 0x20));
}

class Checkpoint : public testing::Test {
 protected:
  Checkpoint()
      : a_(make_table(spec("a/b", TableKind::static_rows, OptimizerKind::adam))),
        b_(make_table(spec("b", TableKind::dynamic, OptimizerKind::adagrad, 3))) {
    train(a_, 300);
    train(b_, 9000);
  }
  TempDir dir_;
  Table a_, b_;
};

TEST_F(Checkpoint, EveryRowComesBackForEveryOptimizer) {
  const std::string step = step_directory(dir_.path(), 1000);
  EXPECT_EQ(step, dir_.path("step_000001000"));
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::adagrad, OptimizerKind::rowwise_adagrad,
                          OptimizerKind::adam, OptimizerKind::ftrl})
    for (const auto rows : {TableKind::static_rows, TableKind::dynamic})
      for (const std::uint32_t dim : {1U, 5U}) {
        const TableSpec s = spec("t", rows, kind, dim);
        Table before = make_table(s), after = make_table(s);
        train(before, 700);
        for (const ShardId shard : all_shards()) {
          const ShardFile file = write_shard(step, shard, {&before});
          EXPECT_EQ(file.rows, rows_of(before, shard).size());
          read_shard(step, file, {&after});
          EXPECT_EQ(rows_of(after, shard), rows_of(before, shard))
              << to_string(kind) << " " << to_string(rows) << " " << dim;
        }
      }
}

TEST_F(Checkpoint, SeveralTablesByName) {
  const std::string step = step_directory(dir_.path(), 1);
  for (const ShardId shard : all_shards()) {
    const ShardFile file = write_shard(step, shard, {&a_, &b_});
    EXPECT_EQ(file.name, "shard_0000" + std::to_string(shard.value) + ".full.h5");
    EXPECT_EQ(file.bytes, std::filesystem::file_size(step + "/" + file.name));
    Table a = make_table(a_.spec()), b = make_table(b_.spec());
    read_shard(step, file, {&b, &a});  // another order
    EXPECT_EQ(rows_of(a, shard), rows_of(a_, shard));
    EXPECT_EQ(rows_of(b, shard), rows_of(b_, shard));
    Table only = make_table(b_.spec());
    read_shard(step, file, {&only});
    EXPECT_EQ(rows_of(only, shard), rows_of(b_, shard));
  }
  for (const auto& entry : std::filesystem::directory_iterator(step))
    EXPECT_NE(entry.path().extension(), ".tmp");
}

TEST_F(Checkpoint, EmptyShardOfADynamicTable) {
  Table none = make_table(b_.spec());
  const ShardFile file = write_shard(dir_.path("step_000000001"), ShardId(2), {&none});
  EXPECT_EQ(file.rows, 0u);
  read_shard(dir_.path("step_000000001"), file, {&none});
  EXPECT_EQ(none.rows(), 0u);
}

TEST_F(Checkpoint, TablesThatDoNotFit) {
  const std::string step = step_directory(dir_.path(), 1);
  const ShardFile file = write_shard(step, ShardId(1), {&a_, &b_});
  const auto read_into = [&](TableSpec s) {
    Table t = make_table(s);
    return error_of([&] { read_shard(step, file, {&t}); });
  };
  TableSpec s = a_.spec();
  s.dim = 8;
  EXPECT_THAT(read_into(s), AllOf(HasSubstr(file.name), HasSubstr("table a/b: dim: expected 8, found 4")));
  s = a_.spec();
  s.optimizer.kind = OptimizerKind::sgd;
  EXPECT_THAT(read_into(s), HasSubstr("optimizer: expected sgd, found adam"));
  s = a_.spec();
  s.rows = 999;
  EXPECT_THAT(read_into(s), HasSubstr("rows: expected 999, found 1000"));
  s = b_.spec();
  s.kind = TableKind::static_rows;
  s.rows = 10;
  EXPECT_THAT(read_into(s), HasSubstr("kind: expected static, found dynamic"));
  s = a_.spec();
  s.name = "c";
  EXPECT_THAT(read_into(s), HasSubstr("tables: expected c, found a/b, b"));
  s = a_.spec();
  s.optimizer.learning_rate = 9;  // hyper-parameters may change
  s.init.seed = 7;
  EXPECT_EQ(read_into(s), "no error");
}

TEST_F(Checkpoint, DamageIsFound) {
  const std::string step = step_directory(dir_.path(), 1);
  const ShardFile file = write_shard(step, ShardId(0), {&a_, &b_});
  const std::string path = step + "/" + file.name;
  const std::string good = read_small_file(path);
  Table a = make_table(a_.spec());
  const Rows fresh = rows_of(a, ShardId(0));
  const auto error = [&] { return error_of([&] { read_shard(step, file, {&a}); }); };
  for (std::uint64_t at = 0; at < file.bytes; at += file.bytes / 23) {
    flip_byte(path, at);
    EXPECT_THAT(error(), AllOf(HasSubstr(path), HasSubstr("crc32c: expected "), HasSubstr(", found "))) << at;
    flip_byte(path, at);
  }
  std::filesystem::resize_file(path, file.bytes - 1);
  EXPECT_THAT(error(), HasSubstr("bytes: expected " + std::to_string(file.bytes) + ", found " +
                                 std::to_string(file.bytes - 1)));
  std::filesystem::remove(path);
  EXPECT_THAT(error(), AllOf(HasSubstr(path), HasSubstr("No such file")));
  EXPECT_EQ(rows_of(a, ShardId(0)), fresh) << "a damaged file must not touch the table";

  // The file of one shard under the name of another.
  write_file_atomically(step + "/shard_00003.full.h5", good);
  ShardFile moved = file;
  moved.name = "shard_00003.full.h5";
  EXPECT_THAT(error_of([&] { read_shard(step, moved, {&a}); }),
              HasSubstr("expected shard_00000.full.h5, found shard_00003.full.h5"));
  write_file_atomically(path, good);
  ShardFile other_rows = file;
  ++other_rows.rows;
  EXPECT_THAT(error_of([&] { read_shard(step, other_rows, {&a}); }), HasSubstr("rows: expected"));
}

TEST_F(Checkpoint, DamageInsideThatTheChecksumsAgreeWith) {
  // The inner layers: contents that are wrong although file size and checksum match the manifest.
  const std::string step = step_directory(dir_.path(), 1);
  ShardFile file = write_shard(step, ShardId(0), {&a_});
  const std::string good = read_small_file(step + "/" + file.name);
  for (std::uint64_t at = 0; at < good.size(); at += good.size() / 60) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0xff);
    write_file_atomically(step + "/" + file.name, bad);
    ShardFile listed = file;
    const std::string told = error_of([&] { read_shard(step, file, {&a_}); });
    const auto found = told.find("found ");
    ASSERT_NE(found, std::string::npos);
    listed.crc32c = static_cast<std::uint32_t>(std::stoul(told.substr(found + 6, 8), nullptr, 16));
    Table a = make_table(a_.spec());
    const std::string error = error_of([&] { read_shard(step, listed, {&a}); });
    // Bytes that nobody reads (free space) may differ; anything that is read must be right or refused.
    if (error == "no error") {
      EXPECT_EQ(rows_of(a, ShardId(0)), rows_of(a_, ShardId(0))) << at;
    } else {
      EXPECT_THAT(error, HasSubstr(file.name));
    }
  }
}

TEST_F(Checkpoint, ManifestRoundTripAndDamage) {
  const std::string step = step_directory(dir_.path(), 77);
  Manifest m;
  m.step = 77;
  m.num_shards = kShards;
  m.config_hash = "0123456789abcdef";
  m.version = "0.1.0";
  m.created = utc_now();
  EXPECT_EQ(m.created.size(), 20u);
  m.tables = {a_.spec(), b_.spec()};
  for (const ShardId s : all_shards()) m.shards.push_back(write_shard(step, s, {&a_, &b_}));
  m.dense_layout = {{"blocks", {1, 2.5, "x"}}};
  write_manifest(step, m);
  EXPECT_EQ(read_manifest(step), m);
  EXPECT_EQ(read_manifest(step + "/"), m);

  const std::string path = step + "/manifest.json", good = read_small_file(path);
  std::string bad = good;
  bad.replace(bad.find("\"step\": 77"), 10, "\"step\": 78");
  write_file_atomically(path, bad);
  EXPECT_THAT(error_of([&] { read_manifest(step); }), AllOf(HasSubstr(path), HasSubstr("crc32c: expected")));
  for (const std::size_t length : {std::size_t{0}, good.size() / 2, good.size() - 3}) {
    write_file_atomically(path, good.substr(0, length));
    EXPECT_THAT(error_of([&] { read_manifest(step); }), AllOf(HasSubstr(path), HasSubstr("damaged")));
  }
  write_file_atomically(path, "{\"crc32c\": \"00000000\"}");
  EXPECT_THAT(error_of([&] { read_manifest(step); }), HasSubstr("manifest"));
  write_file_atomically(path, good);
  std::filesystem::rename(step, dir_.path("step_000000078"));
  EXPECT_THAT(error_of([&] { read_manifest(dir_.path("step_000000078")); }),
              HasSubstr("step directory: expected step_000000077, found step_000000078"));
  std::filesystem::rename(dir_.path("step_000000078"), dir_.path("kept"));
  EXPECT_EQ(read_manifest(dir_.path("kept")), m);
  EXPECT_THROW(read_manifest(dir_.path("none")), IoError);
}

TEST_F(Checkpoint, Latest) {
  EXPECT_THAT(error_of([&] { resolve_checkpoint(dir_.path(), "latest"); }), HasSubstr("no checkpoint there"));
  EXPECT_THROW(publish_latest(dir_.path(), 5), CheckFailed);
  for (const Step step : {Step{5}, Step{6}}) {
    Manifest m;
    m.step = step;
    write_manifest(step_directory(dir_.path(), step), m);
    publish_latest(dir_.path(), step);
    EXPECT_EQ(resolve_checkpoint(dir_.path(), "latest"), step_directory(dir_.path(), step));
  }
  EXPECT_EQ(resolve_checkpoint("elsewhere", dir_.path("step_000000005")), dir_.path("step_000000005"));
  EXPECT_EQ(resolve_checkpoint("elsewhere", dir_.path()), step_directory(dir_.path(), 6));
  EXPECT_THAT(error_of([&] { resolve_checkpoint(dir_.path(), dir_.path("step_000000009")); }),
              HasSubstr("step_000000009: no checkpoint"));
  std::filesystem::remove(dir_.path("step_000000006/manifest.json"));
  EXPECT_THAT(error_of([&] { resolve_checkpoint(dir_.path(), "latest"); }),
              AllOf(HasSubstr("latest"), HasSubstr("manifest.json, found no such file")));
  for (const char* text : {"", "../step_000000005", "step_5", "step_x", "step_000000005/../.."}) {
    dir_.write("latest", text);
    EXPECT_THAT(error_of([&] { resolve_checkpoint(dir_.path(), "latest"); }),
                HasSubstr("expected step_NNNNNNNNN"))
        << text;
  }
}

TEST_F(Checkpoint, FullDiskAndUnwritableDirectory) {
  const std::string file = dir_.write("file", "x");
  EXPECT_THROW(write_shard(file + "/step_000000001", ShardId(0), {&a_}), IoError);
  EXPECT_THROW(write_manifest(file, Manifest{}), IoError);

  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit limited = old;
  limited.rlim_cur = 8192;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const std::string step = step_directory(dir_.path(), 1);
  const std::string error = error_of([&] { write_shard(step, ShardId(0), {&a_, &b_}); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, previous);
  EXPECT_THAT(error, AllOf(HasSubstr("shard_00000.full.h5"), HasSubstr("File too large")));
  EXPECT_TRUE(std::filesystem::is_empty(step));
  EXPECT_EQ(write_shard(step, ShardId(0), {&a_, &b_}).rows,
            rows_of(a_, ShardId(0)).size() + rows_of(b_, ShardId(0)).size());
}

}  // namespace
}  // namespace hf
