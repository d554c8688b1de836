#include "process/names/allocation_text.h"

#include <gtest/gtest.h>

namespace slalom {
namespace {

using Form = AllocationText::Form;

void expect(const std::string& line, Form form, const std::string& type, const std::string& pointer,
            const std::string& assigned) {
  SCOPED_TRACE(line);
  const AllocationText text = read_allocation(line);
  EXPECT_EQ(static_cast<int>(text.form), static_cast<int>(form));
  EXPECT_EQ(text.type, type);
  EXPECT_EQ(text.pointer, pointer);
  EXPECT_EQ(text.assigned, assigned);
}

TEST(AllocationText, SaysWhatIsAllocated) {
  expect("struct node* n = malloc(sizeof(struct node));", Form::Sizeof, "node", "", "n");
  expect("Node* n = new Node(3);", Form::One, "Node", "", "n");
  expect("q->items = new app::Item[n + 1];", Form::Array, "app::Item", "", "q->items");
  expect("auto q = std::make_unique<app::Queue>();", Form::One, "app::Queue", "", "q");
  expect("return std::make_shared<Session>(socket);", Form::Shared, "Session", "", "");
  expect("job = malloc(sizeof *job);", Form::Sizeof, "", "job", "job");
  expect("list->heads[i] = calloc(4, sizeof(*list->heads[i]));", Form::Sizeof, "", "list->heads[i]",
         "list->heads[i]");
  expect("rows = malloc(n * sizeof rows[0]);", Form::Sizeof, "", "rows", "rows");
  expect("m = malloc(sizeof(struct message) + length);", Form::Tail, "message", "", "m");
  expect("char* text = malloc(100);", Form::Unknown, "", "", "text");
  expect("n = (struct node *)xmalloc(size);", Form::Sizeof, "node", "", "n");
  expect("int* counts = malloc(4 * sizeof(int));", Form::Sizeof, "int", "", "counts");
}

TEST(AllocationText, SaysWhatIsReleased) {
  expect("free(q->head);", Form::Unknown, "", "", "q->head");
  expect("delete current;", Form::Unknown, "", "", "current");
  expect("delete[] rows[i];", Form::Unknown, "", "", "rows[i]");
  expect("free(next(q));", Form::Unknown, "", "", "");
}

TEST(AllocationText, IsSilentWhereALineIsNotClear) {
  expect("return grow(list);", Form::Unknown, "", "", "");
  expect("a = new A; b = new B;", Form::Unknown, "", "", "a");
  expect("auto* n = new Node<int>(3);", Form::One, "", "", "n");
  expect("p = malloc(sizeof(struct a) + sizeof(struct b));", Form::Unknown, "", "", "p");
  expect("", Form::Unknown, "", "", "");
}

}  // namespace
}  // namespace slalom
