/**
 * Guesses how the values at a path write times: as numbers since 1970, or as text in a format of strptime.
 *
 * Law: a guess needs every value to be a time in a plausible year. Numbers need a reason beside that, because ids and phone numbers have as many
 * digits: the name of the field, or that they are close together.
 */

/** How a path writes times, and why that is believed. */
export type TimeGuess = { readonly format: string; readonly reason: string }

/** Times of the years 2000 to 2099, in ms since 1970. */
const [FIRST_MS, END_MS] = [Date.UTC(2000, 0), Date.UTC(2100, 0)]
/** Times of one system lie this close together. */
const CLOSE_MS = 366 * 86_400_000
/** Fewer values may be close together by chance. */
const CLOSE_VALUES_MIN = 10

const units = [
  { format: 'epoch_s', perMs: 0.001, noun: 'seconds', mayBeByDistance: false },
  { format: 'epoch_ms', perMs: 1, noun: 'milliseconds', mayBeByDistance: true },
  { format: 'epoch_us', perMs: 1_000, noun: 'microseconds', mayBeByDistance: true },
  // Ids of many systems have nineteen digits, and begin with the time of their creation.
  { format: 'epoch_ns', perMs: 1_000_000, noun: 'nanoseconds', mayBeByDistance: false },
] as const

const timeWords = new Set([
  ...[
    'time',
    'times',
    'timestamp',
    'timestamps',
    'ts',
    'date',
    'datetime',
    'at',
    'when',
    'epoch',
    'unix',
    'clock',
    'iat',
    'nbf',
    'exp',
  ],
  ...[
    'created',
    'updated',
    'modified',
    'deleted',
    'expires',
    'expiry',
    'expiration',
    'started',
    'ended',
    'finished',
    'since',
    'until',
  ],
])
/** They count something, or name a thing, even beside a word of time: `time_id`, `date_count`. */
const otherWords = new Set([
  ...[
    'id',
    'ids',
    'key',
    'number',
    'no',
    'nr',
    'phone',
    'tel',
    'mobile',
    'fax',
    'code',
    'zip',
    'sku',
    'ean',
    'isbn',
    'hash',
    'seq',
  ],
  ...[
    'count',
    'total',
    'size',
    'bytes',
    'length',
    'amount',
    'price',
    'version',
    'duration',
    'elapsed',
    'took',
    'timeout',
    'interval',
  ],
])

/** Returns undefined if the values are not times for sure. `values` has the text of each, and `name` the last field of the path. */
export function guessTime(name: string, values: readonly string[]): TimeGuess | undefined {
  if (values.length === 0) return undefined
  const words = wordsOf(name)
  if (words.some((word) => otherWords.has(word))) return undefined
  const isNamed = words.some((word) => timeWords.has(word))
  return guessNumber(values, isNamed) ?? guessText(values, isNamed)
}

/** `createdAt`, `created_at` and `createdat` have the same words as far as they can be told apart. */
function wordsOf(name: string): readonly string[] {
  const words = name
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}]+/u)
    .filter((word) => word !== '')
  return words.flatMap((word) => [word, ...(/(?:time|timestamp|date)$/.exec(word) ?? [])])
}

function guessNumber(values: readonly string[], isNamed: boolean): TimeGuess | undefined {
  if (!values.every((value) => /^\d{9,19}(?:\.\d{1,9})?$/.test(value))) return undefined
  for (const { format, perMs, noun, mayBeByDistance } of units) {
    // Only seconds are written with a fraction.
    if (format !== 'epoch_s' && values.some((value) => value.includes('.'))) continue
    const times = values.map((value) => Number(value) / perMs)
    if (!times.every(isPlausible)) continue
    const isClose = mayBeByDistance && new Set(values).size >= CLOSE_VALUES_MIN && spanOf(times) <= CLOSE_MS
    if (!isNamed && !isClose) return undefined
    const why = isNamed ? 'its name says that it is a time' : 'the values are close together'
    return { format, reason: `has ${noun} since 1970: all values are ${rangeOf(times)}, and ${why}` }
  }
  return undefined
}

const month = '(?<month>0[1-9]|1[0-2])'
const day = '(?<day>0[1-9]|[12]\\d|3[01])'
const year = '(?<year>20\\d\\d)'
const monthName = '(?<monthName>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)'
const dayName = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)'
const minutes = '(?:[01]\\d|2[0-3]):[0-5]\\d'
const seconds = `${minutes}:[0-5]\\d`
const offset = '[+-](?:0\\d|1[0-3]):?[0-5]\\d'

type TextFormat = {
  readonly format: string
  readonly pattern: RegExp
  /** Digits alone, which may be another number. */
  readonly isNumber?: true
  /** The day and the month could be swapped, unless one value shows which is which. */
  readonly isAmbiguous?: true
}

const clocks = [
  ['', ''],
  [' %H:%M', ` ${minutes}`],
  [' %H:%M:%S', ` ${seconds}`],
] as const

/** Dates with numbers, with and without a clock, in the order of the parts. */
const dates: readonly TextFormat[] = (
  [
    ['%Y/%m/%d', `${year}/${month}/${day}`, false],
    ['%d.%m.%Y', `${day}\\.${month}\\.${year}`, false],
    ['%d/%m/%Y', `${day}/${month}/${year}`, true],
    ['%m/%d/%Y', `${month}/${day}/${year}`, true],
    ['%d-%m-%Y', `${day}-${month}-${year}`, true],
    ['%m-%d-%Y', `${month}-${day}-${year}`, true],
  ] as const
).flatMap(([format, pattern, isAmbiguous]) =>
  clocks.map(([clock, clockPattern]) => ({
    format: format + clock,
    pattern: new RegExp(`^${pattern}${clockPattern}$`),
    ...(isAmbiguous ? { isAmbiguous } : {}),
  })),
)

const textFormats: readonly TextFormat[] = [
  { format: '%d/%b/%Y:%H:%M:%S %z', pattern: new RegExp(`^${day}/${monthName}/${year}:${seconds} ${offset}$`) },
  { format: '%a, %d %b %Y %H:%M:%S %z', pattern: new RegExp(`^${dayName}, ${day} ${monthName} ${year} ${seconds} ${offset}$`) },
  { format: '%a, %d %b %Y %H:%M:%S GMT', pattern: new RegExp(`^${dayName}, ${day} ${monthName} ${year} ${seconds} GMT$`) },
  { format: '%a %b %d %H:%M:%S %z %Y', pattern: new RegExp(`^${dayName} ${monthName} ${day} ${seconds} ${offset} ${year}$`) },
  { format: '%a %b %d %H:%M:%S %Y', pattern: new RegExp(`^${dayName} ${monthName} ${day} ${seconds} ${year}$`) },
  { format: '%Y/%m/%d %H:%M:%S %z', pattern: new RegExp(`^${year}/${month}/${day} ${seconds} ${offset}$`) },
  { format: '%Y%m%dT%H%M%SZ', pattern: new RegExp(`^${year}${month}${day}T(?:[01]\\d|2[0-3])[0-5]\\d[0-5]\\dZ$`) },
  { format: '%Y%m%d%H%M%S', pattern: new RegExp(`^${year}${month}${day}(?:[01]\\d|2[0-3])[0-5]\\d[0-5]\\d$`), isNumber: true },
  { format: '%Y%m%d', pattern: new RegExp(`^${year}${month}${day}$`), isNumber: true },
  ...dates,
]

const monthNames = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

type Parts = { readonly year: number; readonly month: number; readonly day: number }

function guessText(values: readonly string[], isNamed: boolean): TimeGuess | undefined {
  for (const { format, pattern, isNumber, isAmbiguous } of textFormats) {
    const parts = values.map((value) => partsOf(pattern.exec(value)))
    const found = parts.filter((each) => each !== undefined)
    if (found.length < values.length) continue
    const decisive = isAmbiguous === true ? found.findIndex((each) => each.day > 12) : 0
    // Another order of the parts fits as well.
    if (decisive === -1) return undefined
    if (isNumber === true && !isNamed && new Set(values).size < CLOSE_VALUES_MIN) return undefined
    const example = JSON.stringify(values[decisive])
    const why = isAmbiguous === true ? `, and ${example} shows which part is the day` : `, such as ${example}`
    return { format, reason: `has times in the format ${format}: all values are written so${why}` }
  }
  return undefined
}

/** Returns undefined for a day that does not exist. */
function partsOf(match: RegExpExecArray | null): Parts | undefined {
  const { year = '', month: digits, monthName: name = '', day = '' } = match?.groups ?? {}
  if (match === null) return undefined
  const parts = {
    year: Number(year),
    month: digits === undefined ? monthNames.indexOf(name) + 1 : Number(digits),
    day: Number(day),
  }
  const exists = new Date(Date.UTC(parts.year, parts.month - 1, parts.day)).getUTCDate() === parts.day
  return exists ? parts : undefined
}

function isPlausible(ms: number): boolean {
  return ms >= FIRST_MS && ms < END_MS
}

function spanOf(times: readonly number[]): number {
  return Math.max(...times) - Math.min(...times)
}

function rangeOf(times: readonly number[]): string {
  const [first = '', last = ''] = [Math.min(...times), Math.max(...times)].map((ms) => new Date(ms).toISOString().slice(0, 10))
  return first === last ? `on ${first}` : `from ${first} to ${last}`
}
