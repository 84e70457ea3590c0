/**
 * What is in some samples, place by place.
 *
 * Owns: how samples are read, and what is counted of each place. Does not own: which column is made of it (suggest.ts).
 * Law: samples are hostile. The places are bounded in number and in depth, and numbers are judged by their own text, never by the
 * double that JavaScript makes of it.
 */
import type { Step } from '#views/json-path.ts'

export const profileLimits = {
  /** Places in the samples that are profiled, and how deep they may be nested. */
  placesMax: 20_000,
  depthMax: 16,
} as const

/** What the values of a place are. A number is `integer` if it is written without fraction and exponent. */
export type Kind = 'boolean' | 'integer' | 'fraction' | 'text' | 'object' | 'list'

export type Place = {
  readonly steps: readonly Step[]
  /** Samples that have a value there that is not null, and those that have only null. */
  found: number
  nulls: number
  /** Samples that have something else there than objects and lists. */
  scalars: number
  readonly kinds: Set<Kind>
  /** What every text there is, and the longest integer. */
  texts: TextForm | undefined
  digits: number
  /** Whether every integer is one of 64 bits, and one that a double has exactly. */
  fitsBigint: boolean
  fitsDouble: boolean
  /** Of objects: what is under each name. */
  readonly names: Map<string, Place>
  /** Of lists: what is in them. */
  items: Place | undefined
  /** The last sample that was counted. */
  lastFound: number
  lastNull: number
  lastScalar: number
}

export type TextForm = 'uuid' | 'date' | 'timestamp' | 'other'

export type Profile = {
  readonly root: Place
  /** Samples that are JSON. */
  readonly samples: number
  readonly unreadable: readonly { readonly index: number; readonly message: string }[]
  /** There is more than was looked at. */
  readonly isCut: boolean
}

/** A number as it is written. */
class NumberText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export function profileSamples(samples: readonly string[]): Profile {
  return profile(samples, parse, new Profiler({ looksIntoTexts: true }))
}

/** Of which only `found`, `scalars` and `kinds` are wanted: numbers without their texts, and texts by no form. */
export function profileKinds(samples: readonly string[]): Profile {
  return profile(samples, JSON.parse, new Profiler({ looksIntoTexts: false }))
}

function profile(samples: readonly string[], parse: (sample: string) => unknown, profiler: Profiler): Profile {
  const unreadable: { index: number; message: string }[] = []
  for (const [index, sample] of samples.entries()) {
    try {
      profiler.add(parse(sample), index)
    } catch (error) {
      // A RangeError: deeper than the stack.
      const message = error instanceof SyntaxError ? error.message : 'it is nested too deep'
      unreadable.push({ index, message })
    }
  }
  return { root: profiler.root, samples: samples.length - unreadable.length, unreadable, isCut: profiler.isCut }
}

type Reviver = (this: unknown, key: string, value: unknown, context: { readonly source?: string }) => unknown

function parse(sample: string): unknown {
  const keep: Reviver = (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? new NumberText(source) : value
  return JSON.parse(sample, keep as (key: string, value: unknown) => unknown)
}

class Profiler {
  readonly root = newPlace([])
  isCut = false
  readonly #looksIntoTexts: boolean
  #places = 1

  constructor({ looksIntoTexts }: { readonly looksIntoTexts: boolean }) {
    this.#looksIntoTexts = looksIntoTexts
  }

  add(value: unknown, sample: number): void {
    this.#visit(this.root, value, sample)
  }

  #visit(place: Place, value: unknown, sample: number): void {
    if (value === null || value === undefined) {
      if (place.lastFound !== sample && place.lastNull !== sample) {
        place.nulls += 1
        place.lastNull = sample
      }
      return
    }
    if (place.lastFound !== sample) {
      place.found += 1
      place.lastFound = sample
      if (place.lastNull === sample) place.nulls -= 1
    }
    place.kinds.add(kindOf(value))
    if ((typeof value !== 'object' || value instanceof NumberText) && place.lastScalar !== sample) {
      place.scalars += 1
      place.lastScalar = sample
    }
    if (typeof value === 'string') {
      if (this.#looksIntoTexts) place.texts = both(place.texts, formOf(value))
    } else if (value instanceof NumberText) countNumber(place, value.text)
    else if (Array.isArray(value)) {
      place.items ??= this.#newPlace([...place.steps, 'each'])
      if (place.items !== undefined) for (const item of value) this.#visit(place.items, item, sample)
    } else if (typeof value === 'object') {
      for (const [key, inner] of Object.entries(value)) {
        const known = place.names.get(key) ?? this.#newPlace([...place.steps, { key }])
        if (known === undefined) continue
        place.names.set(key, known)
        this.#visit(known, inner, sample)
      }
    }
  }

  #newPlace(steps: readonly Step[]): Place | undefined {
    if (steps.length > profileLimits.depthMax) return undefined
    if (this.#places >= profileLimits.placesMax) {
      this.isCut = true
      return undefined
    }
    this.#places += 1
    return newPlace(steps)
  }
}

function newPlace(steps: readonly Step[]): Place {
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

const bigintMin = -(2n ** 63n)
const bigintMax = 2n ** 63n - 1n

function countNumber(place: Place, text: string): void {
  if (!/^-?\d+$/.test(text)) return
  const digits = text.replace('-', '').length
  place.digits = Math.max(place.digits, digits)
  // Reading an integer of any length takes time that grows with its square.
  const value = digits > 19 ? undefined : BigInt(text)
  place.fitsBigint &&= value !== undefined && value >= bigintMin && value <= bigintMax
  place.fitsDouble &&= Number.isSafeInteger(Number(text))
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const moment = /^(\d{4}-\d\d-\d\d)(?:[T ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:0\d|1[0-4])(?::?[0-5]\d)?)?)?$/

function formOf(text: string): TextForm {
  if (uuid.test(text)) return 'uuid'
  const match = moment.exec(text)
  const [, day = '', hour] = match ?? []
  if (match === null || day.startsWith('0000') || !isDay(day)) return 'other'
  return hour === undefined ? 'date' : 'timestamp'
}

/** Not 30 February. */
function isDay(day: string): boolean {
  const moment = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(moment.getTime()) && moment.toISOString().startsWith(day)
}

function both(one: TextForm | undefined, other: TextForm): TextForm {
  if (one === undefined || one === other) return other
  const isTime = [one, other].every((form) => form === 'date' || form === 'timestamp')
  return isTime ? 'timestamp' : 'other'
}
