import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { runCli } from '../../../test/support/cli.ts'

const fixtures = resolve(import.meta.dirname, '../../../test/fixtures/wal')

describe('segments cat', () => {
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
    ['damaged.wal', 4, 'is damaged at byte 214 (75 bytes)'],
    ['torn.open', 4, 'ends inside the frame that starts at byte 289'],
  ])('prints the intact records of %s, and the error', async (name, records, problem) => {
    const { code, out, err } = await run('cat', name)
    expect({ code, records: out.trimEnd().split('\n').length }).toEqual({ code: 1, records })
    expect(err).toContain(problem)
  })
})

describe('segments cat of a file with a damaged header', () => {
  const damaged = async (name: string, withKey: boolean) => {
    const directory = await mkdtemp(join(tmpdir(), 'inlet-cat-'))
    onTestFinished(() => rm(directory, { recursive: true }))
    const log = join(directory, '0b8fbf52-0d6e-4f0f-9a83-7f8f9c1d2e3f')
    await mkdir(log)
    const bytes = await readFile(join(fixtures, 'http-ndjson.wal'))
    await writeFile(join(log, name), bytes.fill(0, 0, 100).fill(0, withKey ? 400 : 100, withKey ? undefined : 100))
    if (withKey) await copyFile(join(fixtures, 'salt-key'), join(directory, 'salt-key'))
    return runCli(['segments', 'cat', join(log, name)])
  }

  test.each([
    ['by the key of its WAL, even without a footer', true, 'is damaged at byte 0 (128 bytes), byte 359 (96 bytes)'],
    ['by its footer, without a key', false, 'is damaged at byte 0 (128 bytes)'],
  ])('prints the records, found %s', async (_, withKey, problem) => {
    const { code, out, err } = await damaged('000000000041-k3v9x0q2ab.quarantine', withKey)
    expect(code).toBe(1)
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).seq),
    ).toEqual([41, 41, 41, 41, 41, 41])
    expect(err).toContain(problem)
  })

  test('says so if its name is lost, too', async () => {
    expect(await damaged('renamed.wal', true)).toMatchObject({ code: 1, out: '', err: expect.stringContaining('INLETWAL') })
  })
})

describe('segments check', () => {
  test.each(['http-ndjson.wal', 'http-ndjson.wal.zst'])('summarizes %s', async (name) => {
    const { code, out, err } = await run('check', name)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('3 frames, 6 records, 78 payload bytes')
    expect(out).toContain('every checksum matches')
    expect(out).toContain('2026-11-20T08:16:30.123456Z')
  })

  test('prints JSON, also of what is damaged', async () => {
    const whole = await run('check', 'http-ndjson.wal', '--json')
    expect(JSON.parse(whole.out)).toMatchObject({ seq: 41, frames: 3, records: 6, payload_bytes: 78, ok: true })
    const damaged = await run('check', 'damaged.wal', '--json')
    expect(JSON.parse(damaged.out)).toMatchObject({ frames: 2, records: 4, ok: false })
    expect(damaged.code).toBe(1)
  })

  test('reports damage', async () => {
    const { code, out, err } = await run('check', 'damaged.wal')
    expect(code).toBe(1)
    expect(out).toContain('2 frames, 4 records')
    expect(out).not.toContain('every checksum')
    expect(err).toContain('is damaged at byte 214 (75 bytes)')
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

function run(action: string, name: string, ...options: readonly string[]) {
  return runCli(['segments', action, join(fixtures, name), ...options])
}
