import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli } from '../../test/support/cli.ts'

const commands = ['start', 'control', 'node', 'demo', 'accounts', 'keys', 'nodes', 'join-tokens', 'segments', 'commits']

describe('help', () => {
  test.each([[[]], [['help']], [['--help']], [['-h']]])('%j lists the commands', async (args) => {
    const { code, out, err } = await runCli(args)
    expect([code, err]).toEqual([0, ''])
    for (const command of commands) expect(out).toMatch(new RegExp(`^  ${command} {2,}\\w`, 'm'))
    expect(out).not.toMatch(/^ {2}ingest/m)
  })

  test.each([...commands, 'ingest', 'delivery'])('%s --help runs nothing', async (command) => {
    const helpText = await runCli([command, '--help'])
    expect(helpText).toMatchObject({ code: 0, err: '', out: expect.stringContaining(`inlet ${command}`) })
    expect(await runCli(['help', command])).toEqual(helpText)
  })

  test('help of a nested command', async () => {
    const { out } = await runCli(['help', 'keys', 'create'])
    expect(out).toContain('inlet keys create (--name NAME)')
  })
})

test.each(['--version', '-v'])('%s prints the version', async (flag) => {
  expect(await runCli([flag])).toEqual({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), err: '' })
})

describe('wrong usage exits with 2, names the mistake and refers to the help', () => {
  test.each([
    [['strat'], 'unknown command: strat; did you mean start?', 'inlet --help'],
    [['xyzzy'], 'unknown command: xyzzy', 'inlet --help'],
    [['--profile', '', 'apply'], '--profile needs a value', 'inlet --help'],
    [['--profile=', 'apply'], '--profile needs a value', 'inlet --help'],
    [['--profile'], '--profile needs a value', 'inlet --help'],
    [['-x'], 'unknown option: -x', 'inlet --help'],
    [['--prot'], 'unknown option: --prot', 'inlet --help'],
    [['--verison'], 'unknown option: --verison; did you mean --version?', 'inlet --help'],
    [['x'], 'unknown command: x', 'inlet --help'],
    [['demo', '--file'], '--file needs a value', 'inlet demo --help'],
    [['demo', '--file', '--keep'], '--file needs a value', 'inlet demo --help'],
    [['keys', 'revok'], 'unknown command: revok; did you mean revoke?', 'inlet keys --help'],
    [['start', '--unheard-of'], 'unknown option: --unheard-of', 'inlet start --help'],
    [['start', '--hlep'], 'unknown option: --hlep; did you mean --help?', 'inlet start --help'],
    [['start', '--adopt=maybe'], '--adopt: must be true or false, not "maybe"', 'inlet start --help'],
    [['start', '-x'], 'unknown option: -x', 'inlet start --help'],
    [['start', 'now'], 'unexpected argument: now', 'inlet start --help'],
    [['demo', '--evnts', '5'], 'unknown option: --evnts; did you mean --events?', 'inlet demo --help'],
    [['demo', '--events', 'x'], '--events: must be a whole number from 1 to 10000000, not "x"', 'inlet demo --help'],
    [['demo', '--seed', '1', '--seed', '2'], '--seed may be given only once', 'inlet demo --help'],
    [['segments', 'cat'], 'missing argument: FILE', 'inlet segments cat --help'],
    [['segment', 'cat', 'x.wal'], 'unknown command: segment; did you mean segments?', 'inlet --help'],
    [['keys', 'create', '--name', 'x'], 'missing option: --scope', 'inlet keys create --help'],
    [['join-tokens', 'create'], 'missing option: --name', 'inlet join-tokens create --help'],
    [['node', '--join-token'], '--join-token needs a value', 'inlet node --help'],
  ])('%j', async (args, message, help) => {
    expect(await runCli(args)).toEqual({ code: 2, out: '', err: `${message}\nSee: ${help}\n` })
  })
})

test('an invalid configuration prints one message without a stack', async () => {
  const { code, err } = await runCli(['keys', 'list'], { environment: { INLET_NO_SUCH_OPTION: '1' } })
  expect([code, err]).toEqual([1, 'invalid configuration:\n  INLET_NO_SUCH_OPTION: unknown option\n'])
})

test('docs/cli.md is up to date', () => {
  execFileSync(process.execPath, [resolve(import.meta.dirname, '../../tools/write-cli-docs.ts'), '--check'])
})
