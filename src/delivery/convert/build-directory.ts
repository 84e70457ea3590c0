import { lstatSync } from 'node:fs'
import { mkdir, mkdtemp, rm, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { SegmentFiles } from './build/build.ts'
import type { BuiltFile } from './build/built-file.ts'

export type BuiltArtifacts = SegmentFiles & {
  /** Whether all files are still there. */
  isComplete(): boolean
  /** Removes the files. */
  remove(): Promise<void>
}

export type BuiltDirectory = BuiltArtifacts & { readonly directory: string }

/** Builds files in a new directory of the scratch space. If the build throws, it leaves no file behind. */
export async function buildInDirectory(
  scratch: string,
  build: (directory: string) => Promise<SegmentFiles>,
): Promise<BuiltDirectory> {
  const make = () => mkdtemp(join(scratch, 'build-'))
  const directory = await make().catch(async () => {
    // Someone may have removed it since the start.
    await mkdir(scratch, { recursive: true })
    return make()
  })
  try {
    const built = await build(directory)
    return {
      directory,
      ...built,
      isComplete: () => built.files.every(({ path }) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true),
      remove: () => remove(directory, built.files),
    }
  } catch (error) {
    await removeAll(directory)
    throw error
  }
}

/** Knows what there is: to find it out takes longer than to remove the few files of a small segment. */
async function remove(directory: string, files: readonly BuiltFile[]): Promise<void> {
  try {
    await Promise.all(files.map(({ path }) => unlink(path)))
    await rmdir(directory)
  } catch {
    await removeAll(directory)
  }
}

async function removeAll(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true })
}
