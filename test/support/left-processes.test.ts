import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { isRunning } from './is-running.ts'
import { failIfRunning } from './left-processes.ts'
import { until } from './until.ts'

const idle = 'setInterval(() => {}, 1_000)'

test('processes that ended are no failure', async () => {
  await once(spawn(process.execPath, ['-e', '']), 'exit')
  await failIfRunning()
})

test('a process that still runs is named and ended, also one that was stopped', async () => {
  const child = spawn(process.execPath, ['-e', idle, 'left behind'], { env: {}, stdio: 'ignore' })
  const exited = once(child, 'exit')
  child.kill('SIGSTOP')
  await expect(failIfRunning(0)).rejects.toThrow(`${child.pid} ${process.execPath} -e ${idle} left behind`)
  expect(await exited).toEqual([null, 'SIGKILL'])
  await failIfRunning(0)
})

test('a process whose parent has ended is found, also in a group of its own', async () => {
  const script = `const { pid } = require('child_process').spawn(process.execPath, ['-e', '${idle}'], { detached: true, stdio: 'ignore' });
    console.log(pid); process.exit()`
  const parent = spawn(process.execPath, ['-e', script], { env: {}, stdio: ['ignore', 'pipe', 'ignore'] })
  const [output] = await once(parent.stdout, 'data')
  const pid = Number(output)
  await until('the end of the parent', () => parent.exitCode === 0)
  expect(isRunning(pid)).toBe(true)
  await expect(failIfRunning(0)).rejects.toThrow(`${pid} ${process.execPath}`)
  await until('its end', () => !isRunning(pid))
})

test('the children of a process that still runs end with it, also without its environment', async () => {
  const script = `require('child_process').spawn(process.execPath, ['-e', '${idle}'], { env: {}, detached: true, stdio: 'inherit' });
    ${idle}; console.log('started')`
  const parent = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  const closed = once(parent, 'close')
  await once(parent.stdout, 'data')
  await expect(failIfRunning(0)).rejects.toThrow(`-e ${idle}`)
  // The child has the same output.
  await closed
})
