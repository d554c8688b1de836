// Functions that a body may call without slalom seeing their accesses: they are not built with
// -fsanitize=thread.
#pragma once

void unseen_forget();
void unseen_note(int value);
int unseen_times(int value);  // how often `value` was noted
