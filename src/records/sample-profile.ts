/**
 * Profiles samples: a tree of the paths in them, with the kinds of values at each.
 *
 * Owns: reading samples, and the counts of each node. Does not own: which column a node becomes (preview/suggest.ts).
 * Law: samples are hostile. The tree is bounded in size and depth, and numbers are judged by their text, never by the double that
 * JavaScript makes of it.
 */
import type { Step } from '#views/json-path.ts'

export const profileLimits = {
  /** Nodes of the tree, and its depth. */
  nodesMax: 20_000,
  depthMax: 16,
  /** Characters of a text that may be a time. */
  shortCharsMax: 40,
} as const

/** Kinds of values. A number is an `integer` if it is written without fraction and exponent. */
export type Kind = 'boolean' | 'integer' | 'fraction' | 'text' | 'object' | 'list'

export type ProfileNode = {
  readonly steps: readonly Step[]
  /** Samples with a value other than null at this path, and samples with only null. */
  found: number
  nulls: number
  /** Samples with a value that is neither an object nor a list. */
  scalars: number
  readonly kinds: Set<Kind>
  /** The form that all texts have, and the digits of the longest integer. */
  texts: TextForm | undefined
  digits: number
  /** Whether every integer fits in 64 bits, and whether a double represents every integer exactly. */
  fitsBigint: boolean
  fitsDouble: boolean
  /** Every text and number as it is written; undefined once one is too long for a time. Empty if nothing looks into texts. */
  short: string[] | undefined
  /** Children of objects, by name. */
  readonly names: Map<string, ProfileNode>
  /** The elements of lists. */
  items: ProfileNode | undefined
  /** The last sample that each counter counted. */
  lastFound: number
  lastNull: number
  lastScalar: number
}

export type TextForm = 'uuid' | 'date' | 'timestamp' | 'other'

export type Profile = {
  readonly root: ProfileNode
  /** Number of samples that are valid JSON. */
  readonly samples: number
  readonly unreadable: readonly { readonly index: number; readonly message: string }[]
  /** Whether some paths were left out. */
  readonly isCut: boolean
}

/** A number as it was written. */
class NumberText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export function profileSamples(samples: readonly string[]): Profile {
  return profile(samples, parse, new Profiler({ looksIntoTexts: true }))
}

/** Profiles only `found`, `scalars` and `kinds`, which is faster: without the text of numbers and the form of texts. */
export function profileKinds(samples: readonly string[]): Profile {
  return profile(samples, JSON.parse, new Profiler({ looksIntoTexts: false }))
}

function profile(samples: readonly string[], parse: (sample: string) => unknown, profiler: Profiler): Profile {
  const unreadable: { index: number; message: string }[] = []
  for (const [index, sample] of samples.entries()) {
    try {
      profiler.add(parseLeniently(sample, parse), index)
    } catch (error) {
      // A RangeError means that the nesting exceeds the stack.
      const message = error instanceof SyntaxError ? error.message : 'nesting is too deep'
      unreadable.push({ index, message })
    }
  }
  return { root: profiler.root, samples: samples.length - unreadable.length, unreadable, isCut: profiler.isCut }
}

/** Parses what DuckDB takes for JSON, as it does in a view. */
function parseLeniently(sample: string, parse: (sample: string) => unknown): unknown {
  try {
    return parse(sample)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    try {
      return parse(withoutLeniencies(sample))
    } catch {
      // The message quotes the sample as it was sent.
      throw error
    }
  }
}

/** A string as a whole, also one that does not end; NaN or an infinity; a comma before the end of an object or list. */
const lenient = /"(?:[^"\\]|\\.)*"?|-?(?:nan|inf(?:inity)?)|,(?=\s*[\]}])/gi

function withoutLeniencies(sample: string): string {
  // JSON has no other number for them. It counts as a fraction.
  return sample.replace(lenient, (token) => (token.startsWith('"') ? token : token === ',' ? '' : '1e999'))
}

type Reviver = (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown

function parse(sample: string): unknown {
  const keep: Reviver = (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? new NumberText(source) : value
  return JSON.parse(sample, keep as (key: string, value: unknown) => unknown)
}

class Profiler {
  readonly root = newNode([])
  isCut = false
  readonly #looksIntoTexts: boolean
  #nodes = 1

  constructor({ looksIntoTexts }: { readonly looksIntoTexts: boolean }) {
    this.#looksIntoTexts = looksIntoTexts
  }

  add(value: unknown, sample: number): void {
    this.#visit(this.root, value, sample)
  }

  #visit(node: ProfileNode, value: unknown, sample: number): void {
    if (value === null || value === undefined) {
      if (node.lastFound !== sample && node.lastNull !== sample) {
        node.nulls += 1
        node.lastNull = sample
      }
      return
    }
    if (node.lastFound !== sample) {
      node.found += 1
      node.lastFound = sample
      if (node.lastNull === sample) node.nulls -= 1
    }
    node.kinds.add(kindOf(value))
    if ((typeof value !== 'object' || value instanceof NumberText) && node.lastScalar !== sample) {
      node.scalars += 1
      node.lastScalar = sample
    }
    if (typeof value === 'string') {
      if (this.#looksIntoTexts) {
        node.texts = both(node.texts, formOf(value))
        keepShort(node, value)
      }
    } else if (value instanceof NumberText) {
      countNumber(node, value.text)
      keepShort(node, value.text)
    } else if (Array.isArray(value)) {
      node.items ??= this.#newNode([...node.steps, 'each'])
      if (node.items !== undefined) for (const item of value) this.#visit(node.items, item, sample)
    } else if (typeof value === 'object') {
      for (const [key, inner] of Object.entries(value)) {
        const known = node.names.get(key) ?? this.#newNode([...node.steps, { key }])
        if (known === undefined) continue
        node.names.set(key, known)
        this.#visit(known, inner, sample)
      }
    }
  }

  #newNode(steps: readonly Step[]): ProfileNode | undefined {
    if (steps.length > profileLimits.depthMax) return undefined
    if (this.#nodes >= profileLimits.nodesMax) {
      this.isCut = true
      return undefined
    }
    this.#nodes += 1
    return newNode(steps)
  }
}

function newNode(steps: readonly Step[]): ProfileNode {
  return {
    ...{
      steps,
      found: 0,
      nulls: 0,
      scalars: 0,
      kinds: new Set(),
      texts: undefined,
      digits: 0,
      fitsBigint: true,
      fitsDouble: true,
      short: [],
    },
    ...{ names: new Map(), items: undefined, lastFound: -1, lastNull: -1, lastScalar: -1 },
  }
}

function kindOf(value: unknown): Kind {
  if (typeof value === 'boolean') return 'boolean'
  if (typeof value === 'string') return 'text'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'fraction'
  if (value instanceof NumberText) return /^-?\d+$/.test(value.text) ? 'integer' : 'fraction'
  return Array.isArray(value) ? 'list' : 'object'
}

function keepShort(node: ProfileNode, text: string): void {
  if (text.length > profileLimits.shortCharsMax) node.short = undefined
  else node.short?.push(text)
}

const bigintMin = -(2n ** 63n)
const bigintMax = 2n ** 63n - 1n

function countNumber(node: ProfileNode, text: string): void {
  if (!/^-?\d+$/.test(text)) return
  const digits = text.replace('-', '').length
  node.digits = Math.max(node.digits, digits)
  // Parsing an integer takes time that grows with the square of its length.
  const value = digits > 19 ? undefined : BigInt(text)
  node.fitsBigint &&= value !== undefined && value >= bigintMin && value <= bigintMax
  node.fitsDouble &&= Number.isSafeInteger(Number(text))
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const dateOrTimestamp =
  /^(\d{4}-\d\d-\d\d)(?:[T ]([01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:(?:Z|[+-](?:(?:0\d|1[0-3])(?::?[0-5]\d)?|14(?::?00)?))(?:\[[^![\]]+\])*)?)?$/

function formOf(text: string): TextForm {
  if (uuid.test(text)) return 'uuid'
  const match = dateOrTimestamp.exec(text)
  const [, day = '', hour] = match ?? []
  if (match === null || day.startsWith('0000') || !isDay(day)) return 'other'
  return hour === undefined ? 'date' : 'timestamp'
}

/** Whether the date exists: 30 February does not. */
function isDay(day: string): boolean {
  const midnight = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day)
}

function both(one: TextForm | undefined, other: TextForm): TextForm {
  if (one === undefined || one === other) return other
  const isTime = [one, other].every((form) => form === 'date' || form === 'timestamp')
  return isTime ? 'timestamp' : 'other'
}
