#include "comm/mailbox.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "comm/idle.hpp"
#include "comm/mpi.hpp"
#include "comm_test_support.hpp"
#include "core/error.hpp"

namespace hf {
namespace {

/// All ranks are servers and workers, so every pair, oneself included, has rings; the pool is the smallest.
class MailboxTest : public testing::TestWithParam<Transport> {
 protected:
  Communicator world_ = Communicator::world();
  int rank_ = world_.rank();
  RoleMap roles_ = test::role_map(std::string(static_cast<std::size_t>(world_.size()), 'h'));
  PoolLayout layout_{roles_, test::smallest_pool(roles_)};
  std::unique_ptr<Window> window_ = make_window(GetParam(), layout_.pool_bytes());
  std::uint32_t ranks_ = static_cast<std::uint32_t>(world_.size());
  std::uint32_t me_ = static_cast<std::uint32_t>(rank_);

  RingSender sender(std::uint32_t to) {
    return {*window_, layout_.request_ring(WorkerId{me_}, ServerId{to}), PoolLayout::server_bell_offset()};
  }
  RingReceiver receiver(std::uint32_t from) {
    return {*window_, layout_.request_ring(WorkerId{from}, ServerId{me_}), PoolLayout::worker_bell_offset()};
  }
};

std::size_t body_size(std::uint64_t from, std::uint64_t to, std::uint64_t n, std::size_t most) {
  const std::uint64_t x = mix64(mix64(from, to), n);
  return x % 8 == 0 ? 0 : x % 8 == 1 ? most : (x >> 8) % (most + 1);
}
std::byte body_byte(std::uint64_t from, std::uint64_t n, std::size_t i) {
  return static_cast<std::byte>(from * 101 + n * 7 + i * 13);
}

TEST_P(MailboxTest, ManyMessagesOfAnySizeThroughSmallRings) {
  constexpr std::uint64_t kMessages = 400;  // fifty laps of eight slots
  std::thread receiving([&] {
    std::vector<RingReceiver> rings;
    for (std::uint32_t from = 0; from < ranks_; ++from) rings.push_back(receiver(from));
    std::vector<std::uint64_t> received(ranks_, 0);
    Idle idle(*window_, PoolLayout::server_bell_offset(), 60);
    std::uint64_t total = 0;
    const auto take = [&] {
      for (std::uint32_t from = 0; from < ranks_; ++from)
        while (const auto message = rings[from].poll()) {
          const std::uint64_t n = ++received[from];
          const MessageHeader& h = message->header;
          ASSERT_EQ(h.seq, n);
          ASSERT_EQ(h.tag, n);
          ASSERT_EQ(h.sender, from);
          ASSERT_EQ(message->body.size(), body_size(from, me_, n, max_body(layout_.smallest_slot_bytes())));
          for (std::size_t i = 0; i < message->body.size(); ++i)
            ASSERT_EQ(message->body[i], body_byte(from, n, i));
          // A slow receiver now and then, so that senders find the ring full and sleep.
          if (mix64(n, me_) % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
          rings[from].release();
          ++total;
        }
    };
    idle.wait(
        [&] {
          take();
          return total == kMessages * ranks_ || testing::Test::HasFatalFailure();
        },
        [] { return std::string("messages"); });
  });
  std::vector<RingSender> rings;
  for (std::uint32_t to = 0; to < ranks_; ++to) rings.push_back(sender(to));
  Idle idle(*window_, PoolLayout::worker_bell_offset(), 60);
  for (std::uint64_t n = 1; n <= kMessages; ++n)
    for (std::uint32_t to = 0; to < ranks_; ++to) {
      RingSender& ring = rings[to];
      EXPECT_EQ(ring.max_body_bytes(), max_body(layout_.smallest_slot_bytes()));
      idle.wait([&] { return ring.can_send(); }, [] { return std::string("a free slot"); });
      MessageHeader h;
      h.kind = MessageKind::push;
      h.tag = static_cast<std::uint32_t>(n);
      h.body_bytes = static_cast<std::uint32_t>(body_size(me_, to, n, ring.max_body_bytes()));
      const auto body = ring.body();
      for (std::size_t i = 0; i < h.body_bytes; ++i) body[i] = body_byte(me_, n, i);
      EXPECT_EQ(ring.commit(h), message_bytes(h.body_bytes));
    }
  receiving.join();
  world_.barrier("all messages");
}

TEST_P(MailboxTest, TheRingHoldsItsSlotsAndNoMore) {
  RingSender to_self = sender(me_);
  RingReceiver from_self = receiver(me_);
  EXPECT_FALSE(from_self.poll());
  for (std::uint32_t lap = 0; lap < 5; ++lap) {
    std::uint32_t sent = 0;
    for (; to_self.can_send(); ++sent) {
      MessageHeader h;
      h.tag = sent;
      to_self.commit(h);
      ASSERT_LE(sent, to_self.slots());
    }
    EXPECT_EQ(sent, to_self.slots());
    for (std::uint32_t n = 0; n < sent; ++n) {
      // Polling again before the release gives the same message.
      ASSERT_TRUE(from_self.poll());
      const auto message = from_self.poll();
      ASSERT_TRUE(message);
      EXPECT_EQ(message->header.tag, n);
      from_self.release();
    }
    EXPECT_FALSE(from_self.poll());
    EXPECT_TRUE(to_self.can_send());
  }
  world_.barrier("all ranks");
}

TEST_P(MailboxTest, ATornMessageIsNeverRead) {
  const Ring ring = layout_.request_ring(WorkerId{me_}, ServerId{me_});
  RingReceiver from_self = receiver(me_);
  std::vector<std::uint64_t> words(ring.slot_bytes / 8, 0);
  const auto slot = std::as_writable_bytes(std::span(words));
  MessageHeader h;
  h.seq = 1;
  h.kind = MessageKind::push;
  h.sender = static_cast<std::uint16_t>(me_);
  h.body_bytes = 200;
  std::memset(slot.data() + sizeof h, 7, h.body_bytes);
  const std::size_t bytes = seal_message(h, slot);
  std::memcpy(slot.data(), &h.seq, sizeof h.seq);
  const std::size_t hole = sizeof h + 100;
  const auto put = [&](std::size_t offset, const void* data, std::size_t size) {
    window_->put(Rank{rank_}, ring.offset + offset, data, size);
    window_->flush(Rank{rank_});
  };
  // Everything, the head word included, but 8 bytes in the middle that have not arrived.
  put(0, slot.data(), hole);
  put(hole + 8, slot.data() + hole + 8, bytes - hole - 8);
  window_->progress();
  if (GetParam() == Transport::shm) {
    // The head word is stored last, so this cannot be a message on its way.
    EXPECT_THROW(from_self.poll(), MpiError);
  } else {
    EXPECT_FALSE(from_self.poll());
    EXPECT_FALSE(from_self.poll());
  }
  put(hole, slot.data() + hole, 8);
  window_->progress();
  const auto message = from_self.poll();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->body.size(), 200U);
  EXPECT_EQ(message->body[100], std::byte{7});
  world_.barrier("all ranks");
}

TEST_P(MailboxTest, ASenderThatFoundTheRingFullIsWoken) {
  // Again and again a sender blocks on a full ring until the receiver wakes up; a lost ring would cost 100 ms
  // each.
  constexpr std::uint32_t kLaps = 150;
  RingSender to_self = sender(me_);
  const std::uint32_t slots = to_self.slots();
  std::thread receiving([&] {
    RingReceiver from_self = receiver(me_);
    Idle idle(*window_, PoolLayout::server_bell_offset(), 60);
    for (std::uint32_t n = 0; n < kLaps * slots; ++n) {
      if (n % slots == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      idle.wait([&] { return from_self.poll().has_value(); }, [] { return std::string("a message"); });
      from_self.release();
    }
  });
  Idle idle(*window_, PoolLayout::worker_bell_offset(), 60);
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t n = 0; n < kLaps * slots; ++n) {
    idle.wait([&] { return to_self.can_send(); }, [] { return std::string("a free slot"); });
    to_self.commit(MessageHeader{});
  }
  receiving.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  world_.barrier("all ranks");
}

TEST_P(MailboxTest, ATornCreditFreesNoSlot) {
  RingSender to_self = sender(me_);
  while (to_self.can_send()) to_self.commit(MessageHeader{});
  if (window_->direct(Rank{rank_})) GTEST_SKIP() << "a credit is one store there";
  const Ring ring = layout_.request_ring(WorkerId{me_}, ServerId{me_});
  const auto put = [&](std::size_t offset, std::uint64_t value) {
    window_->put(Rank{rank_}, ring.credit_offset + offset, &value, sizeof value);
    window_->flush(Rank{rank_});
    window_->progress();
  };
  // The number is there, its check not yet, then that of another number.
  put(0, 1);
  EXPECT_FALSE(to_self.can_send());
  put(8, make_credit(2).check);
  EXPECT_FALSE(to_self.can_send());
  put(8, make_credit(1).check);
  EXPECT_TRUE(to_self.can_send());
  to_self.commit(MessageHeader{});
  EXPECT_FALSE(to_self.can_send()) << "one credit, one slot";
  // Whole, and of more messages than were ever sent.
  put(0, 1000);
  put(8, make_credit(1000).check);
  EXPECT_FALSE(to_self.can_send());
  world_.barrier("all ranks");
}

TEST_P(MailboxTest, AMessageOfAnotherSenderIsRefused) {
  // As from a rank that computed another layout: it writes into the ring that belongs to somebody else.
  Ring ring = layout_.request_ring(WorkerId{me_}, ServerId{me_});
  RingReceiver from_self = receiver(me_);
  ring.sender_id = me_ + 7;
  RingSender(*window_, ring, PoolLayout::server_bell_offset()).commit(MessageHeader{});
  window_->progress();
  try {
    from_self.poll();
    ADD_FAILURE() << "accepted";
  } catch (const MpiError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("expected sender " + std::to_string(me_) + ", found " +
                                             std::to_string(me_ + 7)));
  }
  world_.barrier("all ranks");
}

INSTANTIATE_TEST_SUITE_P(Transports, MailboxTest, testing::Values(Transport::shm, Transport::mpi),
                         [](const auto& i) { return i.param == Transport::shm ? "shm" : "mpi"; });

}  // namespace
}  // namespace hf
