// Circuits of models are one for all who use a store.

#include <atomic>
#include <thread>

#include "conformance/store_test_support.hpp"

namespace holdfast::testing {
namespace {

constexpr char kModel[] = "main/gpt";

class Circuits : public StoreTest {
 protected:
  void fail(const std::string& target = kModel, bool was_probe = false) {
    CallEnd end;
    end.what = CallEnd::What::failed;
    end.cls = FailureClass::overloaded;
    end.code = "busy";
    end.was_probe = was_probe;
    store->note_call(target, end, options);
  }
  void answer() { store->note_call(kModel, CallEnd(), options); }
  void open_circuit(const std::string& target = kModel) {
    for (int i = 0; i < options.threshold; ++i) fail(target);
  }
  Admission ask(const std::string& target = kModel) { return store->admit_call(target, 20s); }

  CircuitOptions options;
};
INSTANTIATE_TEST_SUITE_P(Stores, Circuits, ::testing::ValuesIn(store_kinds()));

TEST_P(Circuits, OpensForEverybodyAndIsShown) {
  EXPECT_FALSE(ask().is_open);
  EXPECT_TRUE(store->circuits().empty()) << "nothing is kept of what works";
  answer();
  EXPECT_TRUE(store->circuits().empty());
  open_circuit();
  EXPECT_EQ(ask().retry_after, options.open);
  EXPECT_FALSE(ask("main/other").is_open);
  const auto shown = store->circuits();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].target, kModel);
  EXPECT_EQ(shown[0].failures, options.threshold);
  EXPECT_EQ(shown[0].cause, FailureClass::overloaded);
  EXPECT_EQ(shown[0].code, "busy");
}

TEST_P(Circuits, ClosesWithTheProbeThatSucceeds) {
  open_circuit();
  env.advance(options.open);
  EXPECT_TRUE(ask().is_probe);
  EXPECT_TRUE(ask().is_open);
  answer();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(ask().is_open);
    EXPECT_FALSE(ask().is_probe);
  }
}

TEST_P(Circuits, StaysOpenBehindTheProbeThatFails) {
  open_circuit();
  env.advance(options.open);
  EXPECT_TRUE(ask().is_probe);
  fail(kModel, true);
  EXPECT_EQ(ask().retry_after, options.open);
}

TEST_P(Circuits, OfManyAtOnceOneIsTheProbe) {
  open_circuit();
  env.advance(options.open);
  std::atomic<int> probes = 0;
  std::atomic<int> others = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([&] {
      const Admission admission = ask();
      if (admission.is_probe) ++probes;
      if (admission.is_open) ++others;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(probes, 1);
  EXPECT_EQ(others, 15);
}

TEST_P(Circuits, NoFailureOfManyAtOnceIsLost) {
  options.threshold = 1000;
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] {
      for (int n = 0; n < 5; ++n) fail(i % 2 == 0 ? "a/x" : "b/y");
    });
  }
  for (std::thread& caller : callers) caller.join();
  const auto shown = store->circuits();
  ASSERT_EQ(shown.size(), 2u);
  for (const Circuit& circuit : shown) EXPECT_EQ(circuit.failures, 20) << circuit.target;
}

TEST_P(Circuits, OddNamesAreKeptApart) {
  const std::string odd[] = {"a/'; DROP TABLE circuits; --", "a/\\", "a/\xc3\xa9 \x01",
                             "a/" + std::string(300, 'm')};
  for (const std::string& target : odd) open_circuit(target);
  for (const std::string& target : odd) EXPECT_TRUE(ask(target).is_open) << target;
  EXPECT_EQ(store->circuits().size(), std::size(odd));
}

}  // namespace
}  // namespace holdfast::testing
