/** `npm run release`, in a clone. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeWith } from '../support/deployment.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../..')

describeWith('processes', 'a release', () => {
  let clone: string
  const git = (...args: readonly string[]) =>
    run('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], { cwd: clone })
  const release = (args: readonly string[], environment = process.env) =>
    run(process.execPath, ['tools/release.ts', ...args], { cwd: clone, env: environment }).then(
      ({ stdout }) => ({ code: 0, text: stdout }),
      ({ code, stderr }) => ({ code, text: String(stderr) }),
    )

  beforeAll(async () => {
    clone = await mkdtemp(join(tmpdir(), 'inlet-release-'))
    await run('git', ['clone', '--quiet', '--depth', '1', `file://${root}`, clone])
    await run('cp', ['--archive', '--link', join(root, 'node_modules'), clone])
  }, 60_000)
  afterAll(() => rm(clone, { recursive: true, force: true }))

  test('refuses what cannot be one', async () => {
    expect(await release([])).toEqual({ code: 1, text: expect.stringContaining('usage') })
    expect(await release(['0.0.1', '--dry-run'])).toEqual({ code: 1, text: expect.stringContaining('does not come after') })
    await git('tag', 'v7.0.0')
    expect(await release(['7.0.0', '--dry-run'])).toEqual({ code: 1, text: expect.stringContaining('exists already') })
    await writeFile(join(clone, 'note.txt'), 'x')
    expect(await release(['9.0.0', '--dry-run'])).toEqual({ code: 1, text: expect.stringContaining('git status') })
    await rm(join(clone, 'note.txt'))
    await git('checkout', '--quiet', '-b', 'other')
    expect(await release(['9.0.0'])).toEqual({ code: 1, text: expect.stringContaining('made on main') })
    const changelog = await readFile(join(clone, 'CHANGELOG.md'), 'utf8')
    await writeFile(join(clone, 'CHANGELOG.md'), `${changelog.split('## Unreleased')[0]}## Unreleased\n`)
    await git('commit', '--quiet', '--all', '--message', 'empty')
    expect(await release(['9.0.0', '--dry-run'])).toEqual({ code: 1, text: expect.stringContaining('nothing under Unreleased') })
    await git('reset', '--quiet', '--hard', 'HEAD~1')
  })

  test('a dry run builds what is published, and changes nothing', { timeout: 200_000 }, async () => {
    const { code, text } = await release(['9.0.0', '--dry-run'])
    expect(code, text).toBe(0)
    const { version } = JSON.parse(await readFile(join(clone, 'package.json'), 'utf8'))
    const files = await readdir(join(clone, 'release'))
    expect(files.toSorted()).toEqual(['SHA256SUMS', `inlet-${version}.cdx.json`, `inlet-${version}.tgz`].toSorted())
    await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: join(clone, 'release') })
    const sbom = JSON.parse(await readFile(join(clone, `release/inlet-${version}.cdx.json`), 'utf8'))
    expect(sbom).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'inlet', version } } })
    const names = sbom.components.map(({ name }: { name: string }) => name)
    // Installed, built into the console, and neither.
    expect(names).toEqual(expect.arrayContaining(['fastify', '@duckdb/node-api', 'react']))
    expect(names).not.toContain('@biomejs/biome')
    expect(JSON.stringify(sbom)).not.toContain(clone)
    expect((await git('status', '--porcelain')).stdout).toBe('')
  })

  test('a release is one commit with a tag, and names its version everywhere', { timeout: 200_000 }, async () => {
    await git('checkout', '--quiet', '-B', 'main')
    // The tests that it runs first would run this one.
    const programs = join(clone, '.git/programs')
    const { stdout: npm } = await run('which', ['npm'])
    await mkdir(programs)
    const script = `#!/bin/sh\ncase "$*" in "run lint") ;; "run test:thorough") touch left-behind ;; *) exec ${npm.trim()} "$@" ;; esac\n`
    await writeFile(join(programs, 'npm'), script, { mode: 0o755 })
    const identity = Object.fromEntries(
      ['AUTHOR', 'COMMITTER'].flatMap((role) => [
        [`GIT_${role}_NAME`, 't'],
        [`GIT_${role}_EMAIL`, 't@example.com'],
      ]),
    )
    const { version } = JSON.parse(await readFile(join(clone, 'package.json'), 'utf8'))
    const PATH = [programs, dirname(process.execPath), process.env['PATH']].join(delimiter)
    const { code, text } = await release(['8.0.0'], { ...process.env, ...identity, PATH })
    expect(code, text).toBe(0)
    expect((await git('log', '-1', '--format=%s %D')).stdout).toContain('chore: release 8.0.0 HEAD -> main, tag: v8.0.0')
    expect((await git('ls-tree', '--name-only', 'v8.0.0', 'test/upgrade/')).stdout).toContain('test/upgrade/8.0.0.tgz')
    expect((await git('status', '--porcelain')).stdout).toBe('?? left-behind\n')
    const { stdout: old } = await git(
      'grep',
      '--files-with-matches',
      '--fixed-strings',
      version,
      '--',
      'deploy',
      'docs/how-to',
    ).catch(({ stdout }) => ({ stdout }))
    expect(old).toBe('')
    expect((await readdir(join(clone, 'release'))).toSorted()).toContain('inlet-8.0.0.tgz')
  })
})
