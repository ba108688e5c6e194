// Ids and rows in the body of a message. Nobody else knows how they lie there.
//
//   block := ids | rows | ids rows      (by kind: pull | rows | push, assign)
//   ids   := n × id:u64
//   rows  := n × row
//   row   := dim × value:f32            (row_format f32)
//
// n is the header's `rows`, dim that of the header's `table`. A pull names in row_format how its answer shall be written.
// Cost: none beyond the bytes; a view reads where the message lies, a writer writes where it will be sent from.
// Threading: plain values over memory of the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "codec/message.hpp"
#include "core/types.hpp"

namespace hf {

/// Throws: MpiError for a format that this program does not know.
std::size_t bytes_per_row(RowFormat format, std::uint32_t dim);

/// What a block of this kind of message has.
struct BlockParts {
  bool ids = false, rows = false;
};
constexpr BlockParts block_parts(MessageKind kind) noexcept {
  return {.ids = kind == MessageKind::pull || kind == MessageKind::push || kind == MessageKind::assign,
          .rows = kind == MessageKind::rows || kind == MessageKind::push || kind == MessageKind::assign};
}

/// The largest dim of which one row fits a body of `body_bytes`.
std::uint32_t widest_row(MessageKind kind, RowFormat format, std::size_t body_bytes);

class RowBlockWriter {
 public:
  /// Rows that fit a body of `body_bytes`.
  static std::uint32_t capacity(MessageKind kind, RowFormat format, std::uint32_t dim,
                                std::size_t body_bytes);

  /// Requires: rows ≤ capacity (checked).
  RowBlockWriter(std::span<std::byte> body, MessageKind kind, RowFormat format, std::uint32_t dim,
                 std::uint32_t rows);

  /// Where the rows go, to be filled in place. Requires: format f32.
  float* f32_rows() noexcept { return reinterpret_cast<float*>(body_.data() + ids_bytes_); }
  void write_ids(const RowId* ids) noexcept { std::memcpy(body_.data(), ids, ids_bytes_); }
  void write_rows(const float* rows) noexcept {
    std::memcpy(body_.data() + ids_bytes_, rows, row_bytes_ * rows_);
  }
  void write(std::uint32_t at, RowId id, const float* row) noexcept {
    std::memcpy(body_.data() + at * sizeof(RowId), &id, sizeof id);
    std::memcpy(body_.data() + ids_bytes_ + at * row_bytes_, row, row_bytes_);
  }
  /// The header's share: kind, rows, row_format, body_bytes.
  void describe(MessageHeader& header) const noexcept;

 private:
  std::span<std::byte> body_;
  MessageKind kind_;
  RowFormat format_;
  std::uint32_t rows_;
  std::size_t ids_bytes_, row_bytes_;  // row_bytes_: 0 where the block has no rows
};

class RowBlockView {
 public:
  /// dim: ignored where the block has no rows. Throws: MpiError for an unknown format or a body of another size.
  RowBlockView(const MessageHeader& header, std::span<const std::byte> body, std::uint32_t dim = 0);

  std::uint32_t size() const noexcept { return rows_; }
  std::span<const RowId> ids() const noexcept {
    return {reinterpret_cast<const RowId*>(body_.data()), ids_bytes_ / sizeof(RowId)};
  }
  /// Requires: format f32.
  const float* f32_rows() const noexcept { return reinterpret_cast<const float*>(body_.data() + ids_bytes_); }
  void read_rows(float* out) const noexcept {
    std::memcpy(out, body_.data() + ids_bytes_, row_bytes_ * rows_);
  }
  void read_row(std::uint32_t at, float* out) const noexcept {
    std::memcpy(out, body_.data() + ids_bytes_ + at * row_bytes_, row_bytes_);
  }

 private:
  std::span<const std::byte> body_;
  std::uint32_t rows_;
  std::size_t ids_bytes_, row_bytes_;
};

}  // namespace hf
