/**
 * Prepares a release: `npm run release -- X.Y.Z [--dry-run]`.
 *
 * Checks, sets the version, dates the changelog, keeps data of this version for the upgrade test, leaves in `release/` what is published,
 * commits, and tags. Publishes and pushes nothing: it prints the commands that do. With --dry-run it changes no file that git knows.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { makeSbom } from './sbom.ts'

const root = resolve(import.meta.dirname, '..')
const out = join(root, 'release')
const dryRun = process.argv.includes('--dry-run')
const [version] = process.argv.slice(2).filter((argument) => argument !== '--dry-run')

/** Files that name the version that users install. */
const namingVersion = [
  'deploy/kubernetes/cluster/kustomization.yaml',
  'deploy/kubernetes/one-machine/kustomization.yaml',
  'docs/how-to/kubernetes.md',
  'docs/how-to/systemd.md',
]

const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
const run = (program: string, ...args: readonly string[]) => {
  console.log(`\n> ${program} ${args.join(' ')}`)
  execFileSync(program, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
}
const read = (path: string) => readFileSync(join(root, path), 'utf8')

try {
  release(version)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

function release(next: string | undefined): void {
  if (next === undefined || !/^\d+\.\d+\.\d+$/.test(next)) throw new Error('usage: npm run release -- X.Y.Z [--dry-run]')
  const current: string = JSON.parse(read('package.json')).version
  const tag = `v${next}`
  const fixture = `test/upgrade/${next}.tgz`
  const isTagged = (name: string) => git('tag', '--list', name) !== ''
  // The first release has the version that the package has had so far.
  if (compare(next, current) < 0 || (next === current && isTagged(`v${current}`)))
    throw new Error(`${next} does not come after ${current}`)
  if (isTagged(tag)) throw new Error(`the tag ${tag} exists already`)
  if (git('status', '--porcelain') !== '') throw new Error('commit or put aside what git status shows first')
  if (git('branch', '--show-current') !== 'main' && !dryRun) throw new Error('releases are made on main')
  const notes = unreleased(read('CHANGELOG.md'))
  if (notes === '') throw new Error('CHANGELOG.md has nothing under Unreleased: say what users get')
  if (!dryRun) {
    run('npm', 'run', 'lint')
    run('npm', 'run', 'test:thorough')
    run('npm', 'version', next, '--no-git-tag-version', '--allow-same-version')
    run('npm', 'run', '--silent', 'openapi')
    writeFileSync(join(root, 'CHANGELOG.md'), dated(read('CHANGELOG.md'), next))
    for (const path of namingVersion) writeFileSync(join(root, path), read(path).replaceAll(current, next))
    run('node', 'tools/write-upgrade-fixture.ts', fixture)
  }
  // Before the tag: a release that cannot be built is not tagged.
  build(dryRun ? current : next)
  if (!dryRun) {
    // Only what belongs to it, whatever the tests left behind.
    git('add', '--update')
    git('add', fixture)
    git('commit', '--message', `chore: release ${next}`)
    git('tag', '--annotate', tag, '--message', `Inlet ${next}\n\n${notes}`)
  }
  console.log(`\n${dryRun ? 'A dry run' : tag}: release/ has what is published. Notes:\n\n${notes}\n`)
  if (!dryRun)
    console.log(
      [
        'Publish it with:',
        `  git push origin main ${tag}`,
        `  npm publish release/inlet-${next}.tgz`,
        `  docker build --file deploy/Dockerfile --tag inlet:${next} .`,
      ].join('\n'),
    )
}

function build(packed: string): void {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out)
  run('npm', 'run', '--silent', 'package')
  cpSync(join(root, `dist/inlet-${packed}.tgz`), join(out, `inlet-${packed}.tgz`))
  writeFileSync(join(out, `inlet-${packed}.cdx.json`), `${JSON.stringify(makeSbom(), undefined, 2)}\n`)
  const sums = readdirSync(out).map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(out, name)))
        .digest('hex')}  ${name}\n`,
  )
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''))
}

/** Returns what the changelog says of the next release. */
function unreleased(changelog: string): string {
  return /^## Unreleased\n(.*?)(?=^## |$(?![\s\S]))/ms.exec(changelog)?.[1]?.trim() ?? ''
}

function dated(changelog: string, next: string): string {
  return changelog.replace(/^## Unreleased\n/m, `## Unreleased\n\n## ${next} - ${new Date().toISOString().slice(0, 10)}\n`)
}

function compare(a: string, b: string): number {
  const [left, right] = [a.split('.').map(Number), b.split('.').map(Number)]
  const differs = left.findIndex((part, index) => part !== right[index])
  return differs < 0 ? 0 : Number(left[differs]) - Number(right[differs])
}
