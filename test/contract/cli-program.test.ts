/** All commands keep what the program promises: it responds at once, writes nothing unasked, and completes in shells. */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { accessSync, chmodSync, constants, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import type { Command, RouteMap } from '@stricli/core'
import { afterAll, describe, expect, test } from 'vitest'
import { commands } from '#cli/commands.ts'
import type { CliContext } from '#cli/terminal/context.ts'
import { until } from '../support/until.ts'

const program = resolve(import.meta.dirname, '../../src/main.ts')
const directory = mkdtempSync(join(tmpdir(), 'inlet-program-'))
afterAll(() => rmSync(directory, { recursive: true }))

const bin = join(directory, 'bin')
mkdirSync(bin)
writeFileSync(join(bin, 'inlet'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`)
chmodSync(join(bin, 'inlet'), 0o755)

const path = process.env['PATH'] ?? ''
const env = { PATH: `${bin}${delimiter}${path}`, NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }

type Result = { readonly code: number | string; readonly out: string; readonly err: string }

let runs = 0

/** Runs a command of this machine in a new, empty directory, which is its home as well. Returns also what is in there at the end. */
function execute(file: string, args: readonly string[]): Promise<Result & { readonly written: readonly string[] }> {
  const cwd = join(directory, `run-${runs++}`)
  mkdirSync(cwd)
  return new Promise((done) => {
    execFile(file, args, { cwd, env: { ...env, HOME: cwd }, timeout: 20_000 }, (error, out, err) =>
      done({ code: error === null ? 0 : (error.code ?? String(error.signal)), out, err, written: readdirSync(cwd) }),
    )
  })
}

const inlet = (...args: readonly string[]) => execute(join(bin, 'inlet'), args)

/** Returns the names of every command, without groups. */
function leaves(group: RouteMap<CliContext>, names: readonly string[] = []): readonly (readonly string[])[] {
  return group.getAllEntries().flatMap(({ name, target }) => {
    const full = [...names, name.original]
    return 'getAllEntries' in target ? leaves(target, full) : [full]
  })
}

const isReading = new Set(
  'list show files reasons metrics profiles root cat check query tail export quota buckets completion test'.split(' '),
)
const reading = leaves(commands).filter((names) => isReading.has(names.at(-1) ?? ''))

/** Arguments of commands that take no id. */
const given: Readonly<Record<string, string>> = { completion: 'bash', query: 'SELECT * FROM shop' }

describe('a command that only reads', () => {
  test.each(reading.map((names) => [names.join(' '), names] as const))('%s creates nothing', async (_, names) => {
    const { parameters } = names.reduce<Command<CliContext> | RouteMap<CliContext>>(
      (group, name) => (group as RouteMap<CliContext>).getRoutingTargetForInput(name) as RouteMap<CliContext>,
      commands,
    ) as Command<CliContext>
    const { positional } = parameters as { positional?: { kind: string; parameters?: readonly { optional?: boolean }[] } }
    const count = positional?.kind === 'array' ? 1 : (positional?.parameters ?? []).filter(({ optional }) => !optional).length
    const argument = given[names.join(' ')] ?? '0199a000-0000-7000-8000-000000000000'
    const { code, out, err, written } = await inlet(...names, ...Array.from({ length: count }, () => argument))
    expect(written).toEqual([])
    // A name that is not there is wrong usage of this one.
    expect(names.join(' ') === 'segments export' ? [2] : [0, 1]).toContain(code)
    // Says what there is, or what to do.
    expect(`${out}${err}`).toMatch(
      /There are no |is no |no such |run inlet login|INLET_DATA_DIR|complete -o|list them with|Error/,
    )
    expect(err).not.toContain('    at ')
  })
})

describe('help and version', () => {
  test.each(['--help', '--version', 'help'])('%s answers at once and writes nothing', async (argument) => {
    let isQuick = false
    // A busy machine may need some tries. With the server loaded, each takes half a second, and Node alone 40 ms.
    for (let tries = 0; tries < 20 && !isQuick; tries++) {
      const start = performance.now()
      expect(await inlet(argument)).toMatchObject({ code: 0, err: '', written: [] })
      const end = performance.now()
      await execute(process.execPath, ['--eval', '0'])
      const floor = performance.now() - end
      isQuick = end - start < Math.max(150, 3 * floor)
      console.log(`${argument}: ${(end - start).toFixed(0)} ms, Node alone ${floor.toFixed(0)} ms`)
    }
    expect(isQuick).toBe(true)
  })
})

const hasPython = spawnSync('python3', ['--version']).status === 0

test.skipIf(!hasPython).each(['\u0003', '\u0004', 'n\r'])(
  'a question on a terminal that %j ends changes nothing',
  async (keys) => {
    const terminal = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'
    const args = ['-c', terminal, join(bin, 'inlet'), 'endpoints', 'delete', '0199a000-0000-7000-8000-000000000000']
    const child = spawn('python3', args, { env: { ...env, INLET_API_KEY: 'x', NO_COLOR: '1' } })
    let out = ''
    child.stdout.on('data', (text) => (out += text))
    const ended = new Promise((done) => child.on('close', done))
    await until('the question', () => out.includes('[y/N]'))
    child.stdin.write(keys)
    expect(await ended).toBe(1)
    expect(out).toContain('nothing was changed')
    expect(out).not.toContain('    at ')
  },
)

test.each([['--help'], ['profiles'], ['endpoints', 'list']])('%s ends without a stack if nobody reads it', async (...args) => {
  // The reader has left before the command writes.
  const script = 'exec 3> >(exec true); wait $!; exec inlet "$@" >&3 2>&3'
  const { code } = await execute('bash', ['-c', script, 'bash', ...args])
  expect(code).toBe(args[0] === 'endpoints' ? 1 : 0)
})

test('without a home directory there are no profiles, and nothing is written', () => {
  const cwd = join(directory, 'homeless')
  mkdirSync(cwd)
  const run = (...args: readonly string[]) =>
    spawnSync(join(bin, 'inlet'), args, { cwd, env: { ...env, HOME: '/dev/null' }, encoding: 'utf8' })
  expect(run('profiles')).toMatchObject({ status: 0, stdout: expect.stringContaining('There are no profiles') })
  expect(run('endpoints', 'list')).toMatchObject({ status: 1, stderr: expect.stringMatching(/^not signed in/) })
  expect(readdirSync(cwd)).toEqual([])
})

describe('completion', () => {
  const complete = async (...words: readonly string[]) => {
    const { code, out, err } = await inlet('__complete', ...words)
    expect([code, err]).toEqual([0, ''])
    return out.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0]]))
  }

  test('proposes commands, options and values', async () => {
    expect(await complete('endp')).toEqual(['endpoints'])
    expect(await complete('endpoints', 'pa')).toEqual(['pause'])
    expect(await complete('--profile', 'shop', 'dest')).toEqual(['destinations'])
    expect(await complete('--')).toEqual(['--help', '--profile', '--version'])
    expect(await complete('keys', 'list', '--j')).toEqual(['--json'])
    expect(await complete('keys', 'create', '--scope', 'me')).toEqual(['metrics'])
    expect(await complete('completion', 'f')).toEqual(['fish'])
    expect(await complete('unknown', 'x')).toEqual([])
    expect(await complete('')).toEqual(expect.arrayContaining(['start', 'keys', 'endpoints']))
    expect(await complete('')).not.toContain('ingest')
  })

  test('refuses an unknown shell', async () => {
    const { code, err } = await inlet('completion', 'tcsh')
    expect([code, err]).toEqual([2, expect.stringContaining('SHELL')])
  })

  const isInstalled = (shell: string) =>
    path.split(delimiter).some((folder) => {
      try {
        accessSync(join(folder, shell), constants.X_OK)
        return true
      } catch {
        return false
      }
    })

  test('works in bash', async () => {
    const script =
      'source <(inlet completion bash); complete -p inlet; COMP_WORDS=(inlet endpoints "$0"); COMP_CWORD=2; _inlet; declare -p COMPREPLY'
    const { out, err } = await execute('bash', ['-c', script, 're'])
    expect([out, err]).toEqual(['complete -o default -F _inlet inlet\ndeclare -a COMPREPLY=([0]="resume")\n', ''])
  })

  test.skipIf(!isInstalled('fish'))('works in fish', async () => {
    const { out, err } = await execute('fish', ['-c', 'inlet completion fish | source; complete -C "inlet endpoints re"'])
    expect([out, err]).toEqual(['resume\taccept data again\n', ''])
  })

  test.skipIf(!isInstalled('zsh'))('works in zsh', async () => {
    const script =
      'compdef() { print registered $* }; _describe() { print -l $proposals }; source <(inlet completion zsh); words=(inlet endpoints re); CURRENT=3; _inlet'
    const { out, err } = await execute('zsh', ['-fc', script])
    expect([out, err]).toEqual(['registered _inlet inlet\nresume:accept data again\n', ''])
  })
})
