# The agent's program as data, which slalom puts into each initramfs that it builds; and the text of slalom.h, for the
# programs that slalom compiles.
  .section .rodata
  .balign 16
  .globl slalom_agent_begin, slalom_agent_end
slalom_agent_begin:
  .incbin SLALOM_AGENT
slalom_agent_end:
  .byte 0
  .globl slalom_header_begin, slalom_header_end
slalom_header_begin:
  .incbin SLALOM_HEADER
slalom_header_end:
  .byte 0
  .section .note.GNU-stack, "", @progbits
