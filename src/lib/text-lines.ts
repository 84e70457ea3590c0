/**
 * Log lines for people: one event per line, aligned, with colours where the terminal has them.
 *
 * Owns: the form of such a line. Does not own: which events are logged, and where the lines go (telemetry.ts).
 * Law: control characters never reach the terminal, because clients choose some of the text.
 */
import { styleText } from 'node:util'

export type LogFields = Readonly<Record<string, unknown>>

/** By message: returns what a person reads instead of that message and its fields. */
export type Sentences = Readonly<Record<string, (fields: LogFields) => string>>

export type Paint = (style: Parameters<typeof styleText>[0], text: string) => string

export type TextOptions = {
  readonly sentences: Sentences
  readonly paint: Paint
  /** Width of the terminal in characters. */
  readonly columns: number
}

const levels = {
  debug: { word: 'debug: ', style: 'dim' },
  warn: { word: 'warning: ', style: 'yellow' },
  error: { word: 'error: ', style: 'red' },
  fatal: { word: 'error: ', style: 'red' },
} as const

const processChars = 8
/** Time and process. */
const indentChars = 8 + 2 + processChars + 2
/** Text takes at least this width, however narrow the terminal is. */
const charsMin = 20

/** Returns a function that colours text if the stream is a terminal with colours and NO_COLOR is not set. */
export function paintFor(stream: NodeJS.WritableStream): Paint {
  return (style, text) => styleText(style, text, { stream })
}

/** Turns one line of JSON into text. A reason or an error follows the message, and the other fields follow as `name=value`. */
export function formatLine(json: string, { sentences, paint, columns }: TextOptions): string {
  const { level, time, process: name, msg = '', ...fields } = JSON.parse(json)
  const { word, style } = isLevel(level) ? levels[level] : { word: '', style: 'reset' as const }
  const { text, details } = describe(msg, fields, sentences)
  const charsMax = columns - indentChars
  const lines = wrap(`${word}${text}`, charsMax).map((part, index) =>
    index === 0 && word !== '' ? `${paint(style, word)}${part.slice(word.length)}` : part,
  )
  const [line = ''] = lines
  const fitsOneLine = details !== '' && lines.length === 1 && word.length + text.length + 2 + details.length <= charsMax
  const stack = level === 'error' || level === 'fatal' ? stackOf(fields['err']) : []
  const dim = [...(details === '' ? [] : wrap(details, charsMax)), ...stack.flatMap((frame) => wrap(frame, charsMax))].map(
    (part) => paint('dim', part),
  )
  const body = fitsOneLine ? [`${line}  ${dim[0]}`, ...dim.slice(1)] : [...lines, ...dim]
  const head = `${paint('dim', new Date(time).toTimeString().slice(0, 8))}  ${paint('cyan', String(name).padEnd(processChars))}`
  return `${head}  ${body.join(`\n${' '.repeat(indentChars)}`)}\n`
}

function describe(msg: string, fields: LogFields, sentences: Sentences): { readonly text: string; readonly details: string } {
  const sentence = sentences[msg]?.(fields)
  if (sentence !== undefined) return { text: sentence, details: '' }
  const { reason, err, ...others } = fields
  const why = reason ?? (isObject(err) ? err['message'] : undefined)
  return {
    text: why === undefined ? msg : `${msg}${msg === '' ? '' : ': '}${typeof why === 'string' ? why : JSON.stringify(why)}`,
    details: Object.entries(others)
      .map(([key, value]) => `${key}=${quote(value)}`)
      .join(' '),
  }
}

/** Breaks text between words, and words that are longer than a line. All lines but the first will be indented, so that none can pass for an event. */
function wrap(text: string, charsMax: number): readonly string[] {
  return text.split('\n').flatMap((paragraph) => {
    const lines = ['']
    for (const word of printable(paragraph)
      .split(' ')
      .flatMap((whole) => split(whole, charsMax))) {
      const line = lines.at(-1) ?? ''
      if (line === '') lines[lines.length - 1] = word
      else if (line.length + 1 + word.length > charsMax) lines.push(word)
      else lines[lines.length - 1] = `${line} ${word}`
    }
    return lines
  })
}

/** Splits a word that is longer than a line: after a slash, if that fills at least half of the line. */
function split(word: string, charsMax: number): readonly string[] {
  if (word.length <= charsMax) return [word]
  const max = Math.max(charsMax, charsMin)
  const half = Math.floor(max / 2)
  return word.match(new RegExp(`.{1,${max}}$|.{${half},${max - 1}}/|.{1,${max}}`, 'gu')) ?? []
}

/** Returns where an error was thrown, without its message. */
function stackOf(err: unknown): readonly string[] {
  const stack = isObject(err) && typeof err['stack'] === 'string' ? err['stack'] : ''
  const lines = stack.split('\n').map((line) => line.trim())
  return lines.filter((line) => line.startsWith('at '))
}

function quote(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
}

function isLevel(level: unknown): level is keyof typeof levels {
  return typeof level === 'string' && Object.hasOwn(levels, level)
}

function isObject(value: unknown): value is LogFields {
  return typeof value === 'object' && value !== null
}

/** Escapes control characters and invisible ones, so that a text cannot steer a terminal. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}
