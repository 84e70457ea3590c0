import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import type { SegmentCommit } from '#model/commit.ts'
import { newId } from '#model/id.ts'
import { aCommit } from '../../test/support/commits.ts'
import { until } from '../../test/support/until.ts'
import { ControlError } from './control-client.ts'
import { Outbox } from './outbox.ts'

const inTime = () => AbortSignal.timeout(5_000)
let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-outbox-'))
})
afterEach(() => rm(directory, { recursive: true }))

/** Returns an outbox that sends through `send`, and records its calls. */
function open(send: (commits: readonly SegmentCommit[]) => readonly string[]) {
  const sent: string[][] = []
  const recorded: string[] = []
  const outbox = new Outbox({
    directory,
    send: async (commits) => {
      sent.push(commits.map(({ id }) => id))
      return send(commits)
    },
    onRecorded: async ({ id }) => void recorded.push(id),
    files: systemFiles,
    clock: systemClock,
    logger: createLogger('test', 'silent'),
  })
  return { outbox, sent, recorded }
}

const all = (commits: readonly SegmentCommit[]) => commits.map(({ id }) => id)
const down = () => {
  throw new ControlError(0, 'down')
}

describe('Outbox', () => {
  test('removes a recorded commit after calling onRecorded', async () => {
    const { outbox, recorded } = open(all)
    await outbox.start()
    const commit = aCommit({ seq: 1 })
    await outbox.add(commit)
    await outbox.stop(inTime())
    expect(recorded).toEqual([commit.id])
    expect(await readdir(directory)).toEqual([])
  })

  test('keeps commits on disk while control is down, and sends them in order after a restart', async () => {
    const before = open(down)
    await before.outbox.start()
    for (const seq of [1, 2, 3]) await before.outbox.add(aCommit({ seq }))
    await until('a failed attempt', () => before.sent.length > 0)
    await before.outbox.stop(AbortSignal.abort())
    expect(before.recorded).toEqual([])

    const after = open(all)
    await after.outbox.start()
    await after.outbox.stop(inTime())
    expect(after.recorded).toEqual([1, 2, 3].map((seq) => aCommit({ seq }).id))
    expect(after.outbox.size).toBe(0)
  })

  test('keeps a rejected commit and sends the others', async () => {
    const rejected = aCommit({ seq: 1 }).id
    const { outbox, recorded } = open((commits) => {
      if (commits.some(({ id }) => id === rejected)) throw new ControlError(422, 'no')
      return all(commits)
    })
    await outbox.start()
    for (const seq of [1, 2, 3]) await outbox.add(aCommit({ seq }))
    await until('the other commits', () => recorded.length === 2)
    expect(outbox.has(rejected)).toBe(true)
    await outbox.stop(AbortSignal.abort())
    expect(await readdir(directory)).toEqual([`${rejected}.json`])
  })

  test('backs off if control records none of the commits', async () => {
    const { outbox, sent } = open(() => [])
    await outbox.start()
    await outbox.add(aCommit({ seq: 1 }))
    await until('two attempts', () => sent.length >= 2)
    await outbox.stop(AbortSignal.abort())
    expect(sent.length).toBeLessThan(5)
    expect(outbox.size).toBe(1)
  })

  test('limits the bytes of a batch', async () => {
    let isDown = true
    const { outbox, sent, recorded } = open((commits) => (isDown ? down() : all(commits)))
    await outbox.start()
    const outcome = {
      view_id: newId(),
      view_name: 'v',
      view_version: 1,
      processed: 0,
      accepted: 0,
      dropped: 0,
      dlq: 0,
      cast_nulls: 0,
    }
    const last_error = { code: 'view_failed', message: 'x'.repeat(3 * MiB), at: '2026-11-20T08:00:00.000Z' }
    for (const seq of [1, 2, 3, 4, 5]) {
      await outbox.add({ ...aCommit({ seq }), views: [{ ...outcome, errors: {}, last_error }] })
    }
    isDown = false
    await outbox.stop(inTime())
    expect(recorded).toHaveLength(5)
    expect(Math.max(...sent.map((ids) => ids.length))).toBe(2)
  })

  test('removes temporary files of a crash and renames unreadable files', async () => {
    await writeFile(join(directory, 'a.json.1-0.tmp'), '{"id":')
    await writeFile(join(directory, 'b.json'), '{"id":1}')
    const { outbox } = open(all)
    await outbox.start()
    expect(await readdir(directory)).toEqual(['b.json.unreadable'])
    await outbox.stop(inTime())
  })
})
