/** Commits of a removed node that it had not reported, and that never comes back: control finds them by the loss. */
import { expect, test } from 'vitest'
import { rebuildRegion } from '#cli/commits/rebuild-region.ts'
import { clientOf, newControl, operatorToken } from '../support/control.ts'
import { deliverCommit } from '../support/deliver-commit.ts'
import { aLag } from '../support/lags.ts'
import { anEndpointWithNode } from '../support/set-up.ts'
import { aCommit } from '../support/test-node.ts'
import { until } from '../support/until.ts'

type Control = Awaited<ReturnType<typeof newControl>>

/** A node that reported two segments, and delivered the first of them since. */
async function inhabited(at: Control) {
  const account = await at.newAccount()
  const { endpoint, node, destination, place } = await anEndpointWithNode(at, account, { name: 'checkout' })
  await node.snapshot()
  const held = { open_segments: 0, undelivered_segments: 2, records: 20, first_seq: 4, last_seq: 5 }
  await node.heartbeat({}, { lag: [aLag(endpoint.id, held)] })
  return {
    deliver: () => deliverCommit(at.directory, destination, aCommit(node.id, endpoint.id, 4, { records_damaged: 0 })),
    remove: () => clientOf(at.call, operatorToken).delete(`/v1/nodes/${node.id}?force=true`),
    losses: async () => (await account.get('/v1/losses')).body.items,
    reasons: async (): Promise<string> => (await account.get(`/v1/endpoints/${endpoint.id}`)).body.status_reasons.join(),
    receipt: async (seq: number) => (await account.get(`/v1/endpoints/${endpoint.id}/receipts/${node.id}-${seq}`)).body,
    commits: async () => (await account.get(`/v1/endpoints/${endpoint.id}/commits`)).body,
    /** Control knows a commit whose marker is not in the bucket, as if its disk were not mounted. */
    report: () =>
      node.call('POST', 'commits', { commits: [aCommit(node.id, endpoint.id, 3, { records_damaged: 0, destination: place })] }),
  }
}

const none = { segments: 0, records: 0, bytes: 0 }

test('are recorded a minute later, without a word that commits are missing; the rest stays lost', async () => {
  await using at = await newControl({ rebuildRegion })
  const { deliver, remove, losses, reasons, receipt, commits } = await inhabited(at)
  await deliver()
  expect((await remove()).body).toMatchObject({ losses: 1 })
  expect(await losses()).toMatchObject([{ searched_at: null, segments: 2, recovered: none }])
  expect(await reasons()).toContain('and may be in the bucket already: control is reading the markers')
  expect(await receipt(4)).toMatchObject({ state: 'lost', reason: expect.stringContaining('may be in the bucket all the same') })
  expect((await commits()).may_lack_commits_since).toBeNull()

  at.clock.advance(60_001)
  await until('the search', async () => (await losses())[0].searched_at !== null)
  expect(await losses()).toMatchObject([{ state: 'open', segments: 2, recovered: { segments: 1, records: 10 } }])
  expect(await reasons()).toContain('or confirm the loss')
  expect([await receipt(4), await receipt(5)]).toMatchObject([{ state: 'delivered' }, { state: 'lost' }])
  expect((await receipt(5)).reason).not.toContain('may be in the bucket')
})

test('are found once their bucket can be read, and those of others before', async () => {
  const lines: string[] = []
  await using at = await newControl({ rebuildRegion, onLog: (line) => lines.push(line) })
  const [dark, light] = [await inhabited(at), await inhabited(at)]
  await light.deliver()
  expect(await dark.report()).toMatchObject({ status: 200 })
  await Promise.all([dark.remove(), light.remove()])
  at.clock.advance(60_001)
  await until('the other search', async () => (await light.losses())[0].searched_at !== null)
  expect(await light.losses()).toMatchObject([{ recovered: { segments: 1 } }])
  await until('a warning', () => lines.some((line) => line.includes('losses not looked for in buckets')))
  expect(await dark.losses()).toMatchObject([{ searched_at: null }])
  expect(await dark.reasons()).toContain('may be in the bucket already')

  await dark.deliver()
  at.clock.pass(60_001)
  await until('the search', async () => (await dark.losses())[0].searched_at !== null)
  expect(await dark.losses()).toMatchObject([{ recovered: { segments: 1 } }])
})
