import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { systemClock } from '#lib/clock.ts'
import { systemFiles } from '#lib/files.ts'
import { system } from '#lib/system.ts'
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
  const lost: string[] = []
  const outbox = new Outbox({
    ...system,
    directory,
    send: async (commits) => {
      sent.push(commits.map(({ id }) => id))
      return send(commits)
    },
    onRecorded: async ({ id }) => void recorded.push(id),
    onLost: ({ id }) => void lost.push(id),
    files: systemFiles,
    clock: systemClock,
    logger: createLogger('test', 'silent'),
  })
  return { outbox, sent, recorded, lost }
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
    await until('the oldest to be as old as it waits', () => before.outbox.oldestMs > 1)
    await before.outbox.stop(AbortSignal.abort())
    expect(before.recorded).toEqual([])

    const after = open(all)
    await after.outbox.start()
    await after.outbox.stop(inTime())
    expect(after.recorded).toEqual([1, 2, 3].map((seq) => aCommit({ seq }).id))
    expect([after.outbox.size, after.outbox.oldestMs]).toEqual([0, 0])
  })

  test.each([422, 500])(
    'a commit that control refuses with %i holds the later ones of its endpoint, and no other endpoint',
    async (status) => {
      const refused = aCommit({ seq: 2 })
      let isRefused = true
      const { outbox, sent, recorded } = open((commits) => {
        if (isRefused && commits.some(({ id }) => id === refused.id)) throw new ControlError(status, 'no')
        return all(commits)
      })
      for (const seq of [1, 2, 3]) await outbox.add(aCommit({ seq }))
      const others = Array.from({ length: 30 }, (_, index) => aCommit({ seq: 100 + index, endpoint_id: newId() }))
      for (const other of others) await outbox.add(other)
      await outbox.start()
      await until('the other commits', () => recorded.length === 31)
      expect(recorded).toContain(aCommit({ seq: 1 }).id)
      await until('the reason', () => outbox.reasonOf(refused.endpoint_id) !== null)
      expect(outbox.reasonOf(refused.endpoint_id)).toBe(`control did not record commit ${refused.id}: no`)
      expect(others.map(({ endpoint_id }) => outbox.reasonOf(endpoint_id)).filter((reason) => reason !== null)).toEqual([])
      isRefused = false
      await until('the reason to be gone', () => outbox.reasonOf(refused.endpoint_id) === null)
      await outbox.stop(inTime())
      const ofEndpoint = [1, 2, 3].map((seq) => aCommit({ seq }).id)
      expect(recorded.filter((id) => ofEndpoint.includes(id))).toEqual(ofEndpoint)
      expect(sent[0]).toHaveLength(33)
    },
  )

  test('sends commits of many endpoints in one request', async () => {
    const { outbox, sent, recorded } = open(all)
    for (let seq = 0; seq < 50; seq += 1) await outbox.add(aCommit({ seq, endpoint_id: newId() }))
    await outbox.start()
    await outbox.stop(inTime())
    expect([sent.length, recorded.length]).toEqual([1, 50])
  })

  test('after the commits of a failed batch were sent alone, others share requests again', async () => {
    const refused = new Set<string>()
    const { outbox, sent, recorded } = open((commits) => {
      if (commits.some(({ id }) => refused.has(id))) throw new ControlError(422, 'no')
      return all(commits)
    })
    const commits = Array.from({ length: 200 }, (_, seq) => aCommit({ seq, endpoint_id: newId() }))
    for (const { id } of commits.slice(0, 20)) refused.add(id)
    for (const commit of commits) await outbox.add(commit)
    await outbox.start()
    await until('the others', () => recorded.length === 180)
    // The first batch fails, its 30 good commits are sent alone, and the rest in batches again.
    expect(sent.filter((ids) => ids.some((id) => !refused.has(id)))).toHaveLength(1 + 30 + 3)
    await outbox.stop(inTime())
    expect(outbox.size).toBe(20)
  })

  test('a stop does not wait for an endpoint that is held back', async () => {
    const { outbox } = open(() => {
      throw new ControlError(422, 'no')
    })
    await outbox.start()
    const commit = aCommit({ seq: 1 })
    await outbox.add(commit)
    await until('the refusal', () => outbox.reasonOf(commit.endpoint_id) !== null)
    const signal = inTime()
    await outbox.stop(signal)
    expect([signal.aborted, outbox.has(commit.id)]).toEqual([false, true])
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
      failed: 0,
      cast_nulls: 0,
    }
    const last_error = { code: 'view_failed', message: 'x'.repeat(0.75 * MiB), at: '2026-11-20T08:00:00.000Z' }
    for (const seq of [1, 2, 3, 4, 5]) {
      await outbox.add({ ...aCommit({ seq }), views: [{ ...outcome, errors: {}, last_error }] })
    }
    isDown = false
    await outbox.stop(inTime())
    expect(recorded).toHaveLength(5)
    expect(Math.max(...sent.map((ids) => ids.length))).toBe(2)
  })

  test('removes temporary files of a crash, and sets damaged entries aside', async () => {
    const before = open(down)
    for (const seq of [1, 2, 3]) await before.outbox.add(aCommit({ seq }))
    const names = (await readdir(directory)).toSorted()
    await writeFile(join(directory, `${names[0]}.1-0.tmp`), '{"id":')
    await writeFile(join(directory, names[0] ?? ''), '{"id":1}')
    // An intact entry under another name.
    await copyFile(join(directory, names[2] ?? ''), join(directory, names[1] ?? ''))
    const { outbox, recorded, lost } = open(all)
    await outbox.start()
    await outbox.stop(inTime())
    expect(lost).toEqual([1, 2].map((seq) => aCommit({ seq }).id))
    expect(recorded).toEqual([aCommit({ seq: 3 }).id])
    expect((await readdir(directory)).toSorted()).toEqual([`${names[0]}.damaged`, `${names[1]}.damaged`])
  })
})
