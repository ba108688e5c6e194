#include "io/packed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "core/error.hpp"
#include "core/random.hpp"
#include "io/atomic_file.hpp"
#include "io/hdf5.hpp"
#include "io/split.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using test::TempDir;
using testing::AllOf;
using testing::HasSubstr;

/// Two dense columns; one narrow, one wide (dynamic), one narrow bag, one weighted wide bag.
Schema mixed_schema() {
  Schema s;
  s.dense = {"x", "x.missing"};
  const auto add = [&](const std::string& name, std::uint64_t rows, bool multi, bool weighted) {
    SparseFeature f;
    f.name = name;
    f.table = "t_" + name;
    f.rows = rows;
    f.multi_value = multi;
    f.weighted = weighted;
    s.sparse.push_back(f);
    TableConfig t;
    t.name = f.table;
    t.rows = rows;
    t.wrap_ids = name == "wraps";
    s.tables.push_back(t);
  };
  add("narrow", 1000, false, false);
  add("wide", 0, false, false);
  add("tags", 50, true, false);
  add("weighted", 0, true, true);
  add("wraps", 7, false, false);
  return s;
}

/// Row r as a function of r alone, so that a reader's rows can be recognised.
void add_row(Batch& b, std::uint64_t r) {
  b.num_dense = 2;
  b.sparse.resize(5);
  if (b.rows == 0)
    for (const std::size_t f : {2, 3}) b.sparse[f].offsets = {0};
  b.labels.push_back(r % 3 == 0 ? 1.0F : 0.0F);
  b.dense.push_back(static_cast<float>(r));
  b.dense.push_back(static_cast<float>(r % 2));
  b.sparse[0].ids.push_back(r % 1000);
  b.sparse[1].ids.push_back(mix64(r));
  for (std::uint64_t k = 0; k < r % 4; ++k) b.sparse[2].ids.push_back((r + k) % 50);
  b.sparse[2].offsets.push_back(static_cast<std::uint32_t>(b.sparse[2].ids.size()));
  for (std::uint64_t k = 0; k < (r + 1) % 3; ++k) {
    b.sparse[3].ids.push_back(mix64(r, k));
    b.sparse[3].weights.push_back(static_cast<float>(r) / 8);
  }
  b.sparse[3].offsets.push_back(static_cast<std::uint32_t>(b.sparse[3].ids.size()));
  b.sparse[4].ids.push_back(r % 7);
  ++b.rows;
}

std::string write_rows(const std::string& path, std::uint64_t first, std::uint64_t count,
                       bool compress = false, std::uint64_t step = 1777) {
  PackedWriter writer(path, mixed_schema(), compress);
  for (std::uint64_t at = first; at < first + count;) {
    Batch b;
    for (std::uint64_t n = std::min(step, first + count - at); n > 0; --n) add_row(b, at++);
    writer.append(b);
  }
  writer.finish();
  return path;
}

Config packed_config() {
  Config c;
  c.data.format = DataFormat::packed;
  return c;
}

StreamOptions options(std::uint32_t batch, std::uint32_t worker = 0, std::uint32_t workers = 1,
                      Split split = Split::train, std::uint32_t epoch = 0) {
  StreamOptions o;
  o.batch_size = batch;
  o.worker = worker;
  o.num_workers = workers;
  o.split = split;
  o.epoch = epoch;
  return o;
}

std::uint64_t row_at(const Batch& b, std::size_t i) { return static_cast<std::uint64_t>(b.dense[i * 2]); }

/// Every column of every row is what add_row made of the row's number.
void expect_true_rows(const Batch& b) {
  Batch expected;
  for (std::size_t i = 0; i < b.rows; ++i) add_row(expected, row_at(b, i));
  ASSERT_EQ(b.labels, expected.labels);
  ASSERT_EQ(b.dense, expected.dense);
  for (std::size_t f = 0; f < 5; ++f) {
    ASSERT_EQ(b.sparse[f].ids, expected.sparse[f].ids) << f;
    ASSERT_EQ(b.sparse[f].offsets, expected.sparse[f].offsets) << f;
    ASSERT_EQ(b.sparse[f].weights, expected.sparse[f].weights) << f;
  }
}

/// The row numbers of the epoch's stream, put together from all workers by their positions.
std::vector<std::uint64_t> stream_rows(const Config& config, const std::vector<std::string>& files,
                                       std::uint32_t batch, std::uint32_t workers, Split split = Split::train,
                                       std::uint32_t epoch = 0) {
  std::vector<std::uint64_t> out;
  std::uint64_t total = 0, hint = 0;
  for (std::uint32_t w = 0; w < workers; ++w) {
    const auto stream =
        open_packed_stream(config, mixed_schema(), options(batch, w, workers, split, epoch), files);
    hint = stream->total_rows_hint();
    out.resize(hint, ~0ULL);
    Batch b;
    std::uint64_t block = w, rows = 0;
    while (stream->next(b)) {
      EXPECT_EQ(b.first_row, block * batch);
      EXPECT_EQ(b.rows, std::min<std::uint64_t>(batch, hint - b.first_row));
      expect_true_rows(b);
      for (std::size_t i = 0; i < b.rows; ++i) out[b.first_row + i] = row_at(b, i);
      rows += b.rows;
      block += workers;
    }
    EXPECT_FALSE(stream->next(b));
    EXPECT_EQ(stream->stats().rows, rows);
    EXPECT_EQ(stream->stats().bad_rows, 0u);
    total += rows;
  }
  EXPECT_EQ(total, hint);
  return out;
}

std::vector<std::uint64_t> counting(std::uint64_t n) {
  std::vector<std::uint64_t> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(Packed, RowsComeBackInOrderFromSeveralFilesAndWorkers) {
  const TempDir dir;
  for (const bool compress : {false, true}) {
    const std::vector<std::string> files = {write_rows(dir.path("a.h5"), 0, 3000, compress),
                                            write_rows(dir.path("b.h5"), 3000, 0, compress),
                                            write_rows(dir.path("c.h5"), 3000, 1, compress),
                                            write_rows(dir.path("d.h5"), 3001, 5000, compress, 5000)};
    for (const std::uint32_t workers : {1U, 2U, 3U})
      for (const std::uint32_t batch : {100U, 2048U, 10000U})
        EXPECT_EQ(stream_rows(packed_config(), files, batch, workers), counting(8001));
  }
}

TEST(Packed, MoreWorkersThanBlocksAndNoRows) {
  const TempDir dir;
  const auto one = write_rows(dir.path("one.h5"), 0, 1), none = write_rows(dir.path("none.h5"), 0, 0);
  EXPECT_EQ(stream_rows(packed_config(), {one}, 64, 5), counting(1));
  EXPECT_EQ(stream_rows(packed_config(), {none}, 64, 2).size(), 0u);
  Config shuffled = packed_config();
  shuffled.data.shuffle = true;
  EXPECT_EQ(stream_rows(shuffled, {one}, 64, 5), counting(1));
  EXPECT_EQ(stream_rows(shuffled, {none}, 64, 2).size(), 0u);
}

TEST(Packed, ShuffleIsAPermutationThatWorkersAgreeOn) {
  const TempDir dir;
  const std::uint64_t n = 2 * kShuffleBlockRows + 5000;
  const std::vector<std::string> files = {write_rows(dir.path("a.h5"), 0, 20000),
                                          write_rows(dir.path("b.h5"), 20000, n - 20000)};
  Config config = packed_config();
  config.data.shuffle = true;
  const auto order = stream_rows(config, files, 1000, 1);
  EXPECT_EQ(stream_rows(config, files, 1000, 3), order);
  EXPECT_EQ(stream_rows(config, files, 777, 2), order);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, counting(n));
  std::uint64_t fixed = 0, neighbours = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    fixed += order[i] == i;
    neighbours += i > 0 && order[i] == order[i - 1] + 1;
  }
  EXPECT_LT(fixed, 20u);
  EXPECT_LT(neighbours, 20u);
  EXPECT_NE(stream_rows(config, files, 1000, 1, Split::train, 1), order);
  Config other = config;
  other.seed = 1;
  EXPECT_NE(stream_rows(other, files, 1000, 1), order);
  // Only the train split is shuffled.
  EXPECT_EQ(stream_rows(config, files, 1000, 1, Split::validation), counting(n));
}

TEST(Packed, SplitByRatioFollowsTheRowNumber) {
  const TempDir dir;
  const std::uint64_t n = kShuffleBlockRows + 3000;
  const std::vector<std::string> files = {write_rows(dir.path("a.h5"), 0, n)};
  Config config = packed_config();
  config.data.train = files;
  config.data.split.by = SplitBy::ratio;
  config.data.split.validation_ratio = 0.2;
  config.data.split.test_ratio = 0.1;
  std::size_t all = 0;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    std::vector<std::uint64_t> expected;
    for (std::uint64_t r = 0; r < n; ++r)
      if (ratio_split(config.data.split, r) == split) expected.push_back(r);
    EXPECT_EQ(stream_rows(config, files, 512, 3, split), expected);
    Config shuffled = config;
    shuffled.data.shuffle = true;
    auto order = stream_rows(shuffled, files, 512, 2, split);
    EXPECT_EQ(order == expected, split != Split::train);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, expected);
    all += expected.size();
  }
  EXPECT_EQ(all, n);
  // A ratio that leaves most blocks without a member.
  config.data.split.validation_ratio = 0.00002;
  config.data.split.test_ratio = 0;
  stream_rows(config, files, 512, 1, Split::validation);
  config.data.split.by = SplitBy::column;
  EXPECT_THROW(open_packed_stream(config, mixed_schema(), options(10), files), ConfigError);
}

TEST(Packed, SchemaDifferencesNameTheFeature) {
  const TempDir dir;
  const auto file = write_rows(dir.path("a.h5"), 0, 10);
  const auto error = [&](auto change) -> std::string {
    Schema s = mixed_schema();
    change(s);
    try {
      open_packed_stream(packed_config(), s, options(10), {file});
    } catch (const FormatError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error([](Schema&) {}), "no error");
  EXPECT_THAT(error([](Schema& s) { s.sparse[0].rows = 999; }),
              AllOf(HasSubstr(file),
                    HasSubstr("feature narrow: table t_narrow: expected 999 rows, found 1000 rows")));
  EXPECT_THAT(error([](Schema& s) { s.sparse[0].rows = 0; }),
              HasSubstr("expected a dynamic table, found 1000 rows"));
  EXPECT_THAT(error([](Schema& s) { s.sparse[1].table = "other"; }),
              HasSubstr("feature wide: table: expected other, found t_wide"));
  EXPECT_THAT(error([](Schema& s) { s.sparse[1].multi_value = true; }),
              HasSubstr("feature wide: values per row: expected several, found one"));
  EXPECT_THAT(error([](Schema& s) { s.sparse.pop_back(); }),
              HasSubstr("categorical feature 4: expected none, found wraps"));
  EXPECT_THAT(error([](Schema& s) { s.sparse[2].name = "labels"; }),
              HasSubstr("categorical feature 2: expected labels, found tags"));
  EXPECT_THAT(error([](Schema& s) { s.dense[1] = "y"; }),
              HasSubstr("dense column 1: expected y, found x.missing"));
  EXPECT_THAT(error([](Schema& s) { s.dense.push_back("y"); }),
              HasSubstr("dense column 2: expected y, found none"));
  // What the rows once were is known to the file only: a config of packed data need not say it.
  EXPECT_EQ(error([](Schema& s) {
              s.sparse[2].multi_value = s.sparse[3].multi_value = s.sparse[3].weighted = false;
            }),
            "no error");
}

TEST(Packed, IdsMustFitTheirTables) {
  const TempDir dir;
  Batch b;
  add_row(b, 5);
  b.sparse[4].ids[0] = 7000003;  // wraps: modulo 7
  {
    PackedWriter writer(dir.path("a.h5"), mixed_schema());
    writer.append(b);
    b.sparse[0].ids[0] = 1000;
    try {
      writer.append(b);
      FAIL() << "no error";
    } catch (const DataError& e) {
      EXPECT_THAT(
          e.what(),
          HasSubstr("feature narrow: table t_narrow: id 1000 is out of range, the table has 1000 rows"));
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "an unfinished file must not remain";
  b.sparse[0].ids[0] = 5;
  PackedWriter writer(dir.path("a.h5"), mixed_schema());
  writer.append(b);
  EXPECT_FALSE(std::filesystem::exists(dir.path("a.h5")));
  const std::uint64_t bytes = writer.finish();
  EXPECT_EQ(bytes, std::filesystem::file_size(dir.path("a.h5")));
  const auto stream = open_packed_stream(packed_config(), mixed_schema(), options(1), {dir.path("a.h5")});
  Batch read;
  ASSERT_TRUE(stream->next(read));
  EXPECT_EQ(read.sparse[4].ids[0], 7000003u % 7);
  EXPECT_THROW(PackedWriter(dir.path("no/such/a.h5"), mixed_schema()), IoError);
}

TEST(Packed, Labels) {
  const TempDir dir;
  const auto with = write_rows(dir.path("with.h5"), 0, 10), none = write_rows(dir.path("none.h5"), 0, 0);
  const std::string without = dir.path("without.h5");
  Batch b;
  add_row(b, 0);
  b.labels.clear();
  {
    PackedWriter writer(without, mixed_schema());
    writer.append(b);
    Batch labelled;
    add_row(labelled, 1);
    EXPECT_THROW(writer.append(labelled), DataError);
    writer.finish();
  }
  StreamOptions o = options(8);
  EXPECT_THROW(open_packed_stream(packed_config(), mixed_schema(), o, {without}), DataError);
  o.require_labels = false;
  const auto stream = open_packed_stream(packed_config(), mixed_schema(), o, {none, without});
  Batch read;
  ASSERT_TRUE(stream->next(read));
  EXPECT_EQ(read.rows, 1u);
  EXPECT_TRUE(read.labels.empty());
  EXPECT_THROW(open_packed_stream(packed_config(), mixed_schema(), o, {with, without}), FormatError);
}

TEST(Packed, DescribeGivesVocabularyRows) {
  const TempDir dir;
  const auto a = write_rows(dir.path("a.h5"), 0, 3), b = write_rows(dir.path("b.h5"), 3, 3);
  Config config = packed_config();
  config.features.categorical = {test::category("narrow", CategoryEncoding::vocabulary),
                                 test::category("wide"),
                                 test::category("tags", CategoryEncoding::vocabulary)};
  const DataDescription d = describe_packed(config, {a, b});
  EXPECT_EQ(d.vocabulary_sizes,
            (std::vector<std::pair<std::string, std::uint64_t>>{{"narrow", 1000}, {"tags", 50}}));
  Schema other = mixed_schema();
  other.sparse[0].rows = 999;
  PackedWriter(dir.path("c.h5"), other).finish();
  config.features.categorical.push_back(test::category("absent", CategoryEncoding::vocabulary));
  try {
    describe_packed(config, {a, dir.path("c.h5"), dir.write("d.h5", "no hdf5")});
    FAIL() << "no error";
  } catch (const FormatError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("feature narrow: expected 1000 rows as in " + a + ", found 999"),
                                HasSubstr("feature absent: expected"), HasSubstr("d.h5")));
  }
  EXPECT_THROW(describe_packed(config, {dir.path("none.h5")}), IoError);
}

/// Reads everything; "" or the error. Anything but the project's own errors fails the test.
std::string read_all(const std::string& path) {
  try {
    const auto stream = open_packed_stream(packed_config(), mixed_schema(), options(500), {path});
    Batch b;
    while (stream->next(b)) expect_true_rows(b);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Packed, DamagedFilesAreErrors) {
  const TempDir dir;
  const std::string good = read_small_file(write_rows(dir.path("good.h5"), 0, 3000, true));
  const std::string path = dir.path("bad.h5");
  EXPECT_EQ(read_all(dir.path("good.h5")), "");
  for (const std::size_t length :
       {good.size() - 1, good.size() / 2, std::size_t{100}, std::size_t{8}, std::size_t{0}}) {
    dir.write("bad.h5", good.substr(0, length));
    EXPECT_THAT(read_all(path), HasSubstr("bad.h5")) << length;
  }
  std::size_t refused = 0;
  const std::size_t stride = good.size() / 400 + 1;
  for (std::size_t at = 0; at < good.size(); at += stride) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    dir.write("bad.h5", bad);
    // Rows that do come out are right (expect_true_rows); most flips must be refused.
    const std::string error = read_all(path);
    if (!error.empty()) {
      EXPECT_THAT(error, HasSubstr("bad.h5"));
    }
    refused += !error.empty();
  }
  EXPECT_GT(refused, good.size() / stride / 3);

  h5::File other = h5::File::create(dir.path("other.h5"));
  other.set_attribute("/", "format", std::string("something else"));
  other.close();
  EXPECT_THAT(read_all(dir.path("other.h5")), HasSubstr("expected a packed data set (attribute format = "
                                                        "\"hyperframes-packed\"), found \"something else\""));
  h5::File bare = h5::File::create(dir.path("bare.h5"));
  bare.close();
  EXPECT_THAT(read_all(dir.path("bare.h5")), HasSubstr("found another HDF5 file"));
  EXPECT_THAT(read_all(dir.path("none.h5")), HasSubstr("No such file"));
}

TEST(Packed, OffsetsOutOfOrderAreRefused) {
  const TempDir dir;
  Schema s;
  SparseFeature f;
  f.name = "tags";
  f.table = "tags";
  f.rows = 10;
  f.multi_value = true;
  s.sparse = {f};
  for (const std::vector<std::uint64_t>& offsets :
       {std::vector<std::uint64_t>{0, 2, 1, 3}, {0, 1, 2, 4}, {0, 1, 2, 3}, {0, 1, 2}}) {
    h5::File file = h5::File::create(dir.path("a.h5"));
    file.set_attribute("/", "format", std::string("hyperframes-packed"));
    file.set_attribute("/", "format_version", std::uint64_t{1});
    file.set_attribute("/", "rows", std::uint64_t{3});
    file.set_attribute(
        "/", "schema",
        std::string(
            R"({"dense":[],"sparse":[{"name":"tags","table":"tags","rows":10,"multi_value":true,"weighted":false,"bits":32}]})"));
    file.create_group("/bag_0");
    const std::uint32_t ids[] = {1, 2, 3};
    const std::uint8_t labels[] = {0, 1, 0};
    file.create_dataset("/labels", h5::Type::u8, {}).append(labels, 3);
    file.create_dataset("/bag_0/ids", h5::Type::u32, {}).append(ids, 3);
    file.create_dataset("/bag_0/offsets", h5::Type::u64, {}).append(offsets.data(), offsets.size());
    file.close();
    std::string error;
    try {
      const auto stream = open_packed_stream(packed_config(), s, options(3), {dir.path("a.h5")});
      Batch b;
      stream->next(b);
    } catch (const FormatError& e) {
      error = e.what();
    }
    if (offsets == std::vector<std::uint64_t>{0, 1, 2, 3}) {
      EXPECT_EQ(error, "");
    } else {
      EXPECT_THAT(error, AllOf(HasSubstr("a.h5"), HasSubstr("/bag_0"), HasSubstr("expected")))
          << offsets.back();
    }
  }
}

TEST(Packed, H5pyReadsIt) {
  if (std::system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0)
    GTEST_SKIP() << "/usr/bin/python3 has no h5py";
  const TempDir dir;
  const auto file = write_rows(dir.path("a.h5"), 0, 3000, true);
  const auto script = dir.write("check.py", R"(
import h5py, json, sys
f = h5py.File(sys.argv[1], 'r')
a = dict(f.attrs)
text = lambda v: v.decode() if isinstance(v, bytes) else str(v)
assert text(a['format']) == 'hyperframes-packed', a
assert int(a['format_version']) == 1 and int(a['rows']) == 3000 and int(a['num_dense']) == 2
s = json.loads(text(a['schema']))
assert s['dense'] == ['x', 'x.missing'], s
assert [x['name'] for x in s['sparse']] == ['narrow', 'wide', 'tags', 'weighted', 'wraps']
assert [x['bits'] for x in s['sparse']] == [32, 64, 32, 64, 32]
r = 2999
assert f['labels'].shape == (3000,) and f['labels'].dtype == 'uint8' and f['labels'][r] == (r % 3 == 0)
assert f['dense'].shape == (3000, 2) and f['dense'].dtype == 'float32' and f['dense'][r, 0] == r
assert f['ids32'].shape == (3000, 2) and f['ids32'].dtype == 'uint32' and list(f['ids32'][r]) == [r % 1000, r % 7]
assert f['ids64'].shape == (3000,) and f['ids64'].dtype == 'uint64'
o = f['bag_2/offsets']; ids = f['bag_2/ids']
assert text(f['bag_2'].attrs['name']) == 'tags' and o.shape == (3001,)
assert list(ids[o[r]:o[r + 1]]) == [(r + k) % 50 for k in range(r % 4)]
assert f['bag_3/weights'].shape == f['bag_3/ids'].shape
print('ok')
)");
  EXPECT_EQ(std::system(("/usr/bin/python3 " + script + " " + file).c_str()), 0);
}

}  // namespace
}  // namespace hf
