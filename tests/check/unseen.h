// What a body may do without slalom seeing it: these functions are not built with -fsanitize=thread.
#pragma once

void unseen_forget();
void unseen_note(int value);
int unseen_times(int value);  // that it was noted
