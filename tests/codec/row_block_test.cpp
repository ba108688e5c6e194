#include "codec/row_block.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace hf {
namespace {

using testing::HasSubstr;

constexpr auto kF32 = RowFormat::f32;
constexpr auto kUnknown = static_cast<RowFormat>(9);

/// Memory as a slot has it, 8-byte aligned.
struct Body {
  explicit Body(std::size_t bytes) : words((bytes + 7) / 8, ~0ULL), size(bytes) {}
  std::vector<std::uint64_t> words;
  std::size_t size;
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words)).first(size); }
  std::span<const std::byte> of(const MessageHeader& h) { return bytes().first(h.body_bytes); }
};

TEST(RowBlock, WhatIsWrittenIsRead) {
  const std::vector<RowId> ids = {7, ~0ULL, 3};
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  for (const MessageKind kind :
       {MessageKind::push, MessageKind::assign, MessageKind::pull, MessageKind::rows})
    for (const bool by_row : {false, true}) {
      SCOPED_TRACE(to_string(kind));
      const BlockParts parts = block_parts(kind);
      Body body(128);
      RowBlockWriter writer(body.bytes(), kind, kF32, 2, 3);
      if (by_row) {
        for (std::uint32_t i = 0; i < 3; ++i) writer.write(i, ids[i], rows.data() + i * 2);
      } else {
        writer.write_ids(ids.data());
        writer.write_rows(rows.data());
      }
      MessageHeader h;
      writer.describe(h);
      EXPECT_EQ(h.kind, kind);
      EXPECT_EQ(h.rows, 3U);
      EXPECT_EQ(h.row_format, kF32);
      EXPECT_EQ(h.body_bytes, (parts.ids ? 24U : 0U) + (parts.rows ? 24U : 0U));
      const RowBlockView view(h, body.of(h), 2);
      EXPECT_EQ(view.size(), 3U);
      if (parts.ids) {
        EXPECT_THAT(view.ids(), testing::ElementsAreArray(ids));
      } else {
        EXPECT_TRUE(view.ids().empty());
      }
      if (!parts.rows) continue;
      EXPECT_THAT(std::vector<float>(view.f32_rows(), view.f32_rows() + 6), testing::ElementsAreArray(rows));
      std::vector<float> all(6), one(2);
      view.read_rows(all.data());
      EXPECT_EQ(all, rows);
      view.read_row(1, one.data());
      EXPECT_THAT(one, testing::ElementsAre(3, 4));
    }
}

TEST(RowBlock, RowsFilledInPlaceLieWhereTheyAreRead) {
  Body body(64);
  RowBlockWriter writer(body.bytes(), MessageKind::rows, kF32, 4, 2);
  for (int i = 0; i < 8; ++i) writer.f32_rows()[i] = static_cast<float>(i);
  MessageHeader h;
  writer.describe(h);
  std::vector<float> row(4);
  RowBlockView(h, body.of(h), 4).read_row(1, row.data());
  EXPECT_THAT(row, testing::ElementsAre(4, 5, 6, 7));
}

TEST(RowBlock, CapacityFillsTheBodyAndNoMore) {
  for (const MessageKind kind : {MessageKind::push, MessageKind::pull, MessageKind::rows})
    for (std::uint32_t dim = 1; dim < 40; ++dim)
      for (const std::size_t bytes : {0U, 8U, 100U, 4000U}) {
        const std::uint32_t most = RowBlockWriter::capacity(kind, kF32, dim, bytes);
        Body body(bytes);
        MessageHeader h;
        RowBlockWriter(body.bytes(), kind, kF32, dim, most).describe(h);
        EXPECT_LE(h.body_bytes, bytes);
        EXPECT_THROW(RowBlockWriter(body.bytes(), kind, kF32, dim, most + 1), CheckFailed);
        if (kind == MessageKind::pull) continue;
        EXPECT_EQ(most > 0, dim <= widest_row(kind, kF32, bytes)) << dim << " in " << bytes;
      }
}

TEST(RowBlock, AnUnknownFormatIsRefusedByWriterAndReader) {
  Body body(64);
  MessageHeader h;
  RowBlockWriter(body.bytes(), MessageKind::pull, kF32, 4, 2).describe(h);
  h.row_format = kUnknown;  // a pull has no rows, but names the format of its answer
  for (const auto& use : std::vector<std::function<void()>>{
           [] { bytes_per_row(kUnknown, 4); },
           [&] { RowBlockWriter(body.bytes(), MessageKind::rows, kUnknown, 4, 2); },
           [&] { RowBlockView(h, body.of(h), 4); }}) {
    try {
      use();
      ADD_FAILURE() << "accepted";
    } catch (const MpiError& e) {
      EXPECT_THAT(e.what(), HasSubstr("row_format: expected 0 (f32), found 9"));
    }
  }
}

TEST(RowBlock, ABodyOfAnotherSizeIsRefused) {
  Body body(128);
  MessageHeader h;
  RowBlockWriter(body.bytes(), MessageKind::push, kF32, 4, 3).describe(h);
  h.table = 5;
  EXPECT_NO_THROW(RowBlockView(h, body.of(h), 4));
  for (const std::uint32_t dim : {3U, 5U, 0U})
    EXPECT_THROW(RowBlockView(h, body.of(h), dim), MpiError) << dim;
  h.rows = 4;
  try {
    RowBlockView(h, body.of(h), 4);
    FAIL() << "accepted";
  } catch (const MpiError& e) {
    EXPECT_THAT(e.what(), HasSubstr("a push of 4 rows for table 5: expected 96 bytes, found 72"));
  }
}

}  // namespace
}  // namespace hf
