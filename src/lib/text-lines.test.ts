import { stripVTControlCharacters, styleText } from 'node:util'
import { describe, expect, test } from 'vitest'
import { formatLine, type Paint, type Sentences, type TextOptions } from './text-lines.ts'

const plain: Paint = (_, text) => text
const time = new Date(2026, 10, 22, 8, 15, 30).toISOString()

function line(fields: object, options: Partial<TextOptions> = {}): string {
  const json = `${JSON.stringify({ level: 'info', time, process: 'control', ...fields })}\n`
  return formatLine(json, { sentences: {}, paint: plain, columns: 200, ...options })
}

describe('a line of text', () => {
  test('has time, process and message, and the fields by name', () => {
    expect(line({ msg: 'node registered', region: 'loc', parts: [1, 'a b'], note: 'two words' })).toBe(
      '08:15:30  control   node registered  region=loc parts=[1,"a b"] note="two words"\n',
    )
  })

  test('is aligned whatever the process, and says the level of what needs attention', () => {
    expect(line({ level: 'notice', process: 'ingest', msg: 'disk recovered' })).toBe('08:15:30  ingest    disk recovered\n')
    expect(line({ level: 'warn', process: 'delivery', msg: 'segment scan failed' })).toBe(
      '08:15:30  delivery  warning: segment scan failed\n',
    )
  })

  test('puts the reason after the message, or else the message of the error', () => {
    const err = { type: 'Error', message: 'EIO', stack: 'Error: EIO\n    at read (file.ts:1:2)\n    at async run (file.ts:3:4)' }
    expect(line({ level: 'warn', err, msg: 'upkeep failed' })).toBe('08:15:30  control   warning: upkeep failed: EIO\n')
    expect(line({ level: 'fatal', reason: 'it broke', err, msg: 'exiting' })).toBe(
      [
        '08:15:30  control   error: exiting: it broke',
        '                    at read (file.ts:1:2)',
        '                    at async run (file.ts:3:4)\n',
      ].join('\n'),
    )
  })

  test('is the sentence of its event, if there is one', () => {
    const sentences: Sentences = { 'segment committed': ({ records }) => `${records} records` }
    expect(line({ msg: 'segment committed', records: 12, reason: 'x' }, { sentences })).toBe('08:15:30  control   12 records\n')
  })

  test('keeps what a client sent from steering the terminal, or from passing for another event', () => {
    const text = line({
      msg: 'refused',
      reason: 'a\u001b]0;title\u0007\u009b2J\u202eb\r\n08:15:30  control   all is well',
      client: '\u001b[2J',
    })
    expect(text).toBe(
      [
        '08:15:30  control   refused: a\\u{1b}]0;title\\u{7}\\u{9b}2J\\u{202e}b\\u{d}',
        '                    08:15:30  control   all is well',
        '                    client=\\u{1b}[2J\n',
      ].join('\n'),
    )
  })

  test('is broken between words on a narrow terminal, and its fields follow on a line of their own', () => {
    const fields = {
      level: 'warn',
      reason: 'the bucket denied access to the role',
      region: 'eu-central-1',
      attempt: 3,
      msg: 'upload failed',
    }
    expect(line(fields, { columns: 60 })).toBe(
      [
        '08:15:30  control   warning: upload failed: the bucket',
        '                    denied access to the role',
        '                    region=eu-central-1 attempt=3\n',
      ].join('\n'),
    )
  })

  test('breaks a word that is longer than the line inside its column, after a slash if there is one', () => {
    const id = '43764f2f-0b1d-4c07-9d1e-7af1d057a1b2-abcdefghij-0000000007'
    const text = line({ msg: 'not found', reason: '/data/buckets/local/endpoints', segment: id }, { columns: 50 })
    expect(text).toBe(
      [
        '08:15:30  control   not found:',
        '                    /data/buckets/local/endpoints',
        '                    segment=43764f2f-0b1d-4c07-9d1',
        '                    e-7af1d057a1b2-abcdefghij-0000',
        '                    000007\n',
      ].join('\n'),
    )
    const path = line({ msg: '/data/buckets/local/endpoints/views' }, { columns: 50 })
    expect(path).toBe('08:15:30  control   /data/buckets/local/endpoints/\n                    views\n')
  })

  test('is coloured by level', () => {
    const paint: Paint = (style, text) => styleText(style, text, { validateStream: false })
    const colours = line({ level: 'warn', msg: 'low on disk' }, { paint })
    expect(colours).toContain(styleText('yellow', 'warning: ', { validateStream: false }))
    expect(stripVTControlCharacters(colours)).toBe(line({ level: 'warn', msg: 'low on disk' }))
  })
})
