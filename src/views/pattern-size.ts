/**
 * The size of a pattern: the steps that it may take for each byte of text.
 *
 * RE2 takes time in proportion to the text and to the pattern with its repetitions written out. Most patterns take a single step for each byte. But
 * if the automaton has too many states to be kept, each part of the pattern takes one.
 *
 * Law: the size is never less than what was measured at 20 ns for a step, on texts that were made to be slow. It may be much more.
 */
import { Buffer } from 'node:buffer'

/** Quoted text, a character or class by its escape, a class in brackets, or a repetition with its bounds. */
const token = /\\Q.*?(?:\\E|$)|\\[pP](?:\{[^}]*\}|.)|\\x\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|./gsu

/** Sizes of parts that match characters of several bytes. */
const anyCharacter = 2
const otherThanAscii = 4
const unicodeClass = 16

/** Returns the size of a pattern. */
export function patternSize(pattern: string): number {
  // Sizes of the open groups, and of the last part of the innermost group.
  const sizes = [0]
  let last = 0
  const add = (size: number) => {
    last = size
    sizes.push((sizes.pop() ?? 0) + size)
  }
  for (const [text, from, to] of pattern.matchAll(token)) {
    if (text === '(') sizes.push(0)
    else if (text === ')' && sizes.length > 1) add(sizes.pop() ?? 0)
    else if (from !== undefined) add(last * (Math.max(Number(from), Number(to ?? 0), 1) - 1))
    else add(partSize(text))
  }
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** Whether a pattern can match a part of a character, which would be no text. */
export function matchesBytes(pattern: string): boolean {
  return pattern.matchAll(token).some(([text]) => text === '\\C' || (text.startsWith('[') && text.includes('\\C')))
}

/** Returns the number of groups that capture. */
export function countGroups(pattern: string): number {
  const opened = [...pattern.matchAll(token)].filter(([text]) => text === '(')
  return opened.filter(({ index }) => !/^\(\?(?!P?<)/.test(pattern.slice(index, index + 4))).length
}

/** Returns the size of a search for a constant text. */
export function searchSize(text: string): number {
  return 1 + Buffer.byteLength(text) / soughtBytesPerStep
}

/** Comparing so many bytes takes one step. */
export const soughtBytesPerStep = 512

function partSize(text: string): number {
  if (text === '.') return anyCharacter
  if (text.startsWith('\\Q')) return Buffer.byteLength(text)
  if (/^\\[pP]/.test(text)) return unicodeClass
  if (/^\\[DSWx]/.test(text)) return otherThanAscii
  if (text.startsWith('[')) return classSize(text)
  return (text.codePointAt(0) ?? 0) > 0x7f ? otherThanAscii : 1
}

function classSize(text: string): number {
  if (/\\[pP]|\[:\^/.test(text)) return unicodeClass
  const others = [...text.matchAll(/\\[DSWx]|[^\0-\x7f]/gu)].length + (text.startsWith('[^') ? 1 : 0)
  return Math.min(unicodeClass, 1 + others * otherThanAscii)
}
