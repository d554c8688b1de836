# The agent's program as data, for the command to put into each initramfs that it builds.
  .section .rodata
  .balign 16
  .globl slalom_agent_begin, slalom_agent_end
slalom_agent_begin:
  .incbin SLALOM_AGENT
slalom_agent_end:
  .byte 0
  .section .note.GNU-stack, "", @progbits
