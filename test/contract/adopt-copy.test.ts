/** The first part of a takeover by copies: a machine gets the place of a lost node, with a directory for its log. */
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { newNodeSecret } from '#auth/node-credential.ts'
import { adoptCopy, deliverCopies } from '#cli/serve/adopt-copy.ts'
import { TakeOvers } from '#cli/serve/take-overs.ts'
import { readConfig } from '#config/config.ts'
import { withDataDirectory } from '#config/data-paths.ts'
import { copyFolder } from '#copies/copy-names.ts'
import { openCopyStore } from '#copies/open-store.ts'
import { putWriterState } from '#copies/writer-state.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { NodeCredential } from '#node/credential.ts'
import { clientOf, newControl, newRegion, operatorToken, useControl } from '../support/control.ts'
import { hurriedClock } from '../support/hurried-clock.ts'
import { readMarkers } from '../support/read-markers.ts'
import { registerMachine } from '../support/register-machine.ts'
import { TestNode } from '../support/test-node.ts'
import { until } from '../support/until.ts'

const control = useControl()
const operator = () => clientOf(control().call, operatorToken)
const logger = createLogger('test', 'silent')
const { signal } = new AbortController()

let directory = ''
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-adopt-copy-'))
})
afterEach(() => rm(directory, { recursive: true }))

/** A lost node with a copy store, and a machine of its region. */
async function furnished(at = control()) {
  const region = newRegion()
  const lost = await TestNode.register(at, region)
  const config = readConfig({
    ...{ INLET_DATA_DIR: join(directory, 'data'), INLET_CONTROL_URL: at.app.nodeApiUrl, INLET_REGION: region },
    INLET_COPY_URL: pathToFileURL(join(directory, 'copies')).href,
  })
  const { copyUrl } = config
  if (copyUrl === null) throw new Error('no copy store')
  await registerMachine(config, at.app.nodeApiUrl, region)
  const { store, prefix } = await openCopyStore({ ...config, copyUrl }, system)
  await putWriterState(store, copyFolder(prefix, lost.id), { number: 0, state: { fences: 0, below: {} } }, signal)
  const adopt = async () => {
    at.clock.advance(16_000)
    const adopting = adoptCopy({ config, nodeId: lost.id, logger, clock: system.clock, stopping: signal })
    let isDone = false
    const done = () => {
      isDone = true
    }
    adopting.then(done, done)
    await until('the takeover', async () => {
      await readMarkers(at.store)
      return isDone
    })
    const copy = await adopting
    const { paths } = withDataDirectory(config, copy.directory)
    const credential = await NodeCredential.open(lost.id, paths.nodeCredential, system)
    lost.secret = credential.secret
    const { status } = await lost.call('GET', `committed-seqs?node_id=${lost.id}`)
    return { copy, status }
  }
  /** As a process that is stopped. */
  const adoptAndStop = async () => {
    const { copy, status } = await adopt()
    copy.close()
    return status
  }
  /** The lost machine gets its place again. */
  const giveBack = async () => {
    expect((await operator().delete(`/v1/nodes/${lost.id}/credential?release=true&force=true`)).status).toBe(204)
    lost.secret = newNodeSecret()
    await lost.registerAgain()
  }
  const revoke = async () => expect((await operator().delete(`/v1/nodes/${lost.id}/credential`)).status).toBe(204)
  const directories = () => readdirSync(join(directory, 'data', 'taken-over')).filter((name) => !name.endsWith('.lock'))
  return { config, lost, adopt, adoptAndStop, giveBack, revoke, directories }
}

test('goes on where it was stopped', async () => {
  const { adoptAndStop, directories } = await furnished()
  expect([await adoptAndStop(), await adoptAndStop()]).toEqual([200, 200])
  expect(directories()).toHaveLength(1)
})

test.each(['another machine has had the node since', 'its credential was revoked'])('begins anew if %s', async (what) => {
  const { adoptAndStop, giveBack, revoke, directories } = await furnished()
  expect(await adoptAndStop()).toBe(200)
  await (what === 'its credential was revoked' ? revoke() : giveBack())
  expect(await adoptAndStop()).toBe(200)
  // The first one may have segments that need a person.
  expect(directories()).toHaveLength(2)
})

test('is not begun while another process is at it: delivery is asked to take over what a command does already', async () => {
  const { adopt } = await furnished()
  const { copy } = await adopt()
  await expect(adopt()).rejects.toThrow(/is locked by another process: delivery of this node, or another inlet node --adopt-copy/)
  copy.close()
  const { copy: again } = await adopt()
  again.close()
})

test('is left to the process that is at it by the delivery beside it, which reports no failure', async () => {
  await using at = await newControl({ environment: { INLET_TAKEOVER_AFTER: '60s' } })
  const { config, lost, adopt } = await furnished(at)
  const well = { process: 'ingest', applied_epoch: 1, healthy: true, reasons: [], disk_full: false, blocked: [] }
  await lost.call('POST', 'heartbeat', { ...well, node_id: lost.id, copy_store: true })
  at.clock.advance(61_000)
  const { copy } = await adopt()
  const lines: string[] = []
  const log = (level: string) => (_: object, text: string) => void lines.push(`${level}: ${text}`)
  const heard = { ...logger, info: log('info'), notice: log('notice'), warn: log('warn'), error: log('error') }
  const hooks = { logger: heard as unknown as typeof logger, clock: hurriedClock() }
  const takeOvers = new TakeOvers({
    ...{ config, ...hooks },
    async deliver(nodeId, stopping) {
      await adoptCopy({ config, nodeId, ...hooks, stopping })
      throw new Error('it was begun')
    },
  })
  await takeOvers.start()
  await until('the attempt', () => lines.length > 1)
  await takeOvers.stop()
  copy.close()
  expect(lines.slice(0, 2)).toEqual([
    'notice: control gave a lost node to this one: its copies are delivered here',
    'info: the lost node is not taken over here: another process on this machine is at it',
  ])
})

test('is begun again in the same process if it could not be stopped', async () => {
  const { config, lost, adopt, adoptAndStop } = await furnished()
  // All is restored.
  await adoptAndStop()
  const nothing = { isCurrent: true, lags: [], reportedLags: undefined, reports: 0, problem: null }
  const stop = () => Promise.reject(new Error('EIO'))
  const app = await deliverCopies({
    ...{ config, nodeId: lost.id, isRegionGiven: true, logger, clock: system.clock, stopping: signal },
    startIngest: async () => ({ refused: new Promise(() => undefined), hasHandedOver: () => true, stop }),
    startDelivery: async () => ({ backlog: () => nothing, stop: async () => undefined }),
  })
  await expect(app.stop(signal)).rejects.toThrow('EIO')
  const { copy } = await adopt()
  copy.close()
})

test('keeps its directory until control knows that the takeover has ended: the next one goes on with it', async () => {
  await using stack = new AsyncDisposableStack()
  const at = stack.use(await newControl())
  const { adopt } = await furnished(at)
  const { copy } = await adopt()
  await copy.removeCopies(new AbortController().signal)
  await stack.disposeAsync()
  await copy.end()
  copy.close()
  expect(existsSync(copy.directory)).toBe(true)
})

test('leaves nothing behind once all is delivered', async () => {
  const { adopt } = await furnished()
  const { copy } = await adopt()
  await copy.removeCopies(new AbortController().signal)
  await copy.end()
  copy.close()
  expect(existsSync(copy.directory)).toBe(false)
})
