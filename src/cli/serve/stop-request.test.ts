import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { type StopRequestOptions, stopRequest } from './stop-request.ts'

function furnished(options: Partial<StopRequestOptions> = {}) {
  const source = new EventEmitter()
  const clock = new ManualClock()
  const said: string[] = []
  const onRepeated = () => said.push('repeated')
  void stopRequest({ source, isSupervised: false, hasTerminal: true, clock, onRepeated, ...options }).then((reason) =>
    said.push(reason),
  )
  const settled = async () => {
    await Promise.resolve()
    return said
  }
  return { source, clock, settled }
}

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'])('%s stops the process', async (signal) => {
  const { source, settled } = furnished()
  source.emit(signal)
  expect(await settled()).toEqual([signal])
})

test('the same request arrives twice, from the group and from npm; a later signal is a repetition', async () => {
  const { source, clock, settled } = furnished()
  source.emit('SIGINT')
  clock.advance(500)
  source.emit('SIGINT')
  expect(await settled()).toEqual(['SIGINT'])
  clock.advance(1_000)
  source.emit('SIGINT')
  expect(await settled()).toEqual(['SIGINT', 'repeated'])
})

test('without a terminal, one that closes has no effect', async () => {
  const { source, settled } = furnished({ hasTerminal: false })
  source.emit('SIGHUP')
  expect(await settled()).toEqual([])
  source.emit('SIGTERM')
  expect(await settled()).toEqual(['SIGTERM'])
})

test('under the supervisor only its message and its end count', async () => {
  const { source, settled } = furnished({ isSupervised: true })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) source.emit(signal)
  source.emit('message', 'something else')
  expect(await settled()).toEqual([])
  source.emit('message', { type: 'stop' })
  expect(await settled()).toEqual(['stopped by the supervisor'])

  const orphan = furnished({ isSupervised: true })
  orphan.source.emit('disconnect')
  expect(await orphan.settled()).toEqual(['supervisor exited'])
})

test.each([
  ['the end of npm stops the process', [], ['npm exited']],
  ['under nohup npm ends with the terminal, and the process continues', ['SIGHUP'], []],
])('%s', async (_, signals, reasons) => {
  let parent = 100
  const { source, clock, settled } = furnished({ hasTerminal: false, npmPid: () => parent })
  clock.advance(10_000)
  expect(await settled()).toEqual([])
  parent = 1
  clock.advance(1_000)
  for (const signal of signals) source.emit(signal)
  clock.advance(10_000)
  expect(await settled()).toEqual(reasons)
})
