import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli } from '../../test/support/cli.ts'

const fixtures = resolve(import.meta.dirname, '../../test/fixtures/wal')

describe('segment cat', () => {
  test.each(['http-ndjson.wal', 'http-ndjson.wal.zst'])('prints one line per record of %s', async (name) => {
    const { code, out } = await run('cat', name)
    expect(code).toBe(0)
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines.map(({ payload }) => payload)).toEqual([
      '{"id":1,"city":"Zürich"}',
      '{"id":2}',
      '{"id":3}',
      '{"id":4}',
      'not json',
      '{"id":5}',
    ])
    expect(lines[3]).toEqual({
      seq: 41,
      record_index: 3,
      received_at: '2026-11-20T08:15:31.623456Z',
      envelope: { protocol: 'http' },
      payload: '{"id":4}',
    })
  })

  test('prints bytes that are not UTF-8 as base64', async () => {
    const { out } = await run('cat', 'mqtt-single.wal')
    expect(JSON.parse(out.split('\n')[1] ?? '')).toMatchObject({ envelope_base64: 'JgD/', payload_base64: 'AP/+CoA=' })
  })

  test.each([
    ['damaged.wal', 2, 'is damaged at byte 214'],
    ['torn.open', 4, 'ends inside the frame that starts at byte 289'],
  ])('prints the intact records of %s, and the error', async (name, records, problem) => {
    const { code, out, err } = await run('cat', name)
    expect({ code, records: out.trimEnd().split('\n').length }).toEqual({ code: 1, records })
    expect(err).toContain(problem)
  })
})

describe('segment check', () => {
  test.each(['http-ndjson.wal', 'http-ndjson.wal.zst'])('summarizes %s', async (name) => {
    const { code, out, err } = await run('check', name)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('3 frames, 6 records, 78 payload bytes')
    expect(out).toContain('every checksum matches')
    expect(out).toContain('2026-11-20T08:16:30.123456Z')
  })

  test('reports damage', async () => {
    const { code, out, err } = await run('check', 'damaged.wal')
    expect(code).toBe(1)
    expect(out).toContain('1 frames, 2 records')
    expect(out).not.toContain('every checksum')
    expect(err).toContain('is damaged at byte 214')
  })
})

describe('a file that is not a segment', () => {
  test.each([
    ['write.ts', 'is not a segment of Inlet'],
    ['absent.wal', 'no such file'],
    ['.', 'is a directory'],
  ])('%s', async (name, message) => {
    const { code, err } = await run('check', name)
    expect(code).toBe(1)
    expect(err).toContain(message)
  })
})

function run(action: string, name: string) {
  return runCli(['segment', action, join(fixtures, name)])
}
