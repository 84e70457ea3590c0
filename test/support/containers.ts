/** Real containers without a daemon and without an image registry: podman, and images that `.ci/images` has made of Debian's packages. */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { searchPath } from './page.ts'

const root = resolve(import.meta.dirname, '../..')
const images = process.env['INLET_TEST_IMAGES'] ?? ''
const tools = join(process.env['INLET_TEST_ENGINES'] ?? '', 'deploy/bin')

/** The first folder has programs that stand for those of a page, such as `docker`. */
const path = [join(root, 'test/containers/bin'), tools, searchPath, '/usr/sbin'].join(delimiter)
const locate = (program: string) => spawnSync('which', [program], { env: { PATH: path }, encoding: 'utf8' }).stdout?.trim()

/** Says why containers cannot run here, or nothing. */
export function whyNoContainers(): string | undefined {
  const missing = ['podman', 'runc', 'podman-compose', 'kustomize', 'unshare', 'curl', 'jq'].filter((program) => !locate(program))
  if (missing.length > 0) return `skipped: not there: ${missing.join(', ')}; see docs/contributing/components.md`
  if (!existsSync(join(images, 'made'))) return 'skipped: INLET_TEST_IMAGES is not a folder that .ci/images filled'
  if (process.getuid?.() !== 0) return 'skipped: only root makes networks for containers'
  return undefined
}

/** Prepares a folder for containers, images and volumes, and returns the environment in which programs use it. */
export function prepareContainers(directory: string): Readonly<Record<string, string>> {
  const at = (name: string) => join(directory, name)
  mkdirSync(directory, { recursive: true })
  // Limits that this machine allows.
  writeFileSync(
    at('containers.conf'),
    '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=1000:1000"]\n[network]\nnetwork_backend = "netavark"\n',
  )
  return {
    PATH: path,
    CONTAINERS_CONF: at('containers.conf'),
    INLET_TEST_PODMAN: at('podman'),
    INLET_TEST_IMAGES: images,
    INLET_TEST_KUBERNETES: at('kubernetes'),
    // The other format has no health checks.
    BUILDAH_FORMAT: 'docker',
    INLET_TEST_NPM: prepareNpm(at('npm')),
  }
}

/** Forgets containers, volumes and networks, but no images. Whatever used them has ended. */
export function forgetContainers({
  INLET_TEST_PODMAN: directory = '',
  INLET_TEST_KUBERNETES: objects = '',
}: Readonly<Record<string, string>>): void {
  const kept = ['root/libpod', 'root/overlay-containers', 'root/volumes', 'root/networks', 'run', 'tmp', 'networks']
  for (const name of kept) rmSync(join(directory, name), { recursive: true, force: true })
  rmSync(objects, { recursive: true, force: true })
}

/** npm within a build has the settings, the cache and the certificate authorities of this machine. */
function prepareNpm(directory: string): string {
  mkdirSync(directory)
  const config = (name: string) => execFileSync('npm', ['config', 'get', name], { encoding: 'utf8', cwd: directory }).trim()
  const own = config('userconfig')
  if (existsSync(own)) copyFileSync(own, join(directory, 'npmrc'))
  // A build that asks a registry for what the cache has waits for it: minutes, on a bad day.
  const settings = 'cafile=/etc/ssl/certs/ca-certificates.crt\nprefer-offline=true\n'
  writeFileSync(join(directory, 'npmrc'), `\n${settings}`, { flag: 'a' })
  copyFileSync(process.env['NODE_EXTRA_CA_CERTS'] ?? '/etc/ssl/certs/ca-certificates.crt', join(directory, 'ca.crt'))
  mkdirSync(config('cache'), { recursive: true })
  execFileSync('ln', ['--symbolic', config('cache'), join(directory, 'cache')])
  return directory
}

/** Copies the files of the repository, as a clone has them. */
export function cloneTo(directory: string): void {
  const names = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  for (const name of names.split('\0'))
    if (name !== '' && existsSync(join(root, name))) cpSync(join(root, name), join(directory, name))
}
