import type { Buffer } from 'node:buffer'

/**
 * Finds where a JSON value ends that arrives in chunks.
 *
 * Owns: brackets and texts. Does not own: whether the value is JSON: its views say that.
 */
const QUOTE = 0x22
const BACKSLASH = 0x5c
const LINE_FEED = 0x0a

/** Bytes to look at outside of texts: brackets by what they add to the depth, and others as NO_BRACKET. */
const NOTHING = 2
const NO_BRACKET = 0
const stops = new Int8Array(256).fill(NOTHING)
for (const bracket of '{[') stops[bracket.charCodeAt(0)] = 1
for (const bracket of '}]') stops[bracket.charCodeAt(0)] = -1
stops[QUOTE] = NO_BRACKET
stops[LINE_FEED] = NO_BRACKET

export class JsonValue {
  #depth = 0
  #isInText = false
  /** The last chunk ended with a backslash of a text. */
  #isEscaped = false
  #hasLineFeed = false

  /** Whether a byte begins an object, an array or a text: a value that shows itself where it ends. */
  static isStart(byte: number): boolean {
    return byte === QUOTE || stops[byte] === 1
  }

  /** Whether a value has begun and not ended. */
  get isOpen(): boolean {
    return this.#depth > 0 || this.#isInText
  }

  /** Whether any value that was read has a line feed. */
  get hasLineFeed(): boolean {
    return this.#hasLineFeed
  }

  /** Reads from the first byte of a value, or on from the chunk before. Returns where the value ends, or the end of the chunk. */
  read(chunk: Buffer, from: number): number {
    let at = this.#isInText ? this.#readText(chunk, from) : from
    let depth = this.#depth
    while (at < chunk.length && (at === from || depth > 0)) {
      const stop = stops[chunk[at] ?? 0]
      at += 1
      if (stop === NOTHING) continue
      if (stop !== NO_BRACKET) depth += stop ?? 0
      else if (chunk[at - 1] === LINE_FEED) this.#hasLineFeed = true
      else at = this.#readText(chunk, at)
    }
    this.#depth = depth
    return at
  }

  /** Reads from the byte after the quote. */
  #readText(chunk: Buffer, from: number): number {
    let isEscaped = this.#isEscaped
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at]
      if (byte === LINE_FEED) this.#hasLineFeed = true
      if (isEscaped) isEscaped = false
      else if (byte === BACKSLASH) isEscaped = true
      else if (byte === QUOTE) {
        this.#isInText = false
        this.#isEscaped = false
        return at + 1
      }
    }
    this.#isInText = true
    this.#isEscaped = isEscaped
    return chunk.length
  }
}
