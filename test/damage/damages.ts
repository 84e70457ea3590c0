/** Damages of a file, as disks, file systems, restores and people cause them. */
import { copyFile, mkdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'

export const damages = [
  'flip at the head',
  'flip in the middle',
  'flip at the tail',
  'cut to nothing',
  'cut in half',
  'cut by a byte',
  'remove',
  'replace by another copy',
  'make unreadable',
] as const
export type DamageName = (typeof damages)[number]

const endBytes = 16

/** Damages a file. `other` is an older copy of it, or another file of its kind. Returns false if that is not possible, or changes nothing. */
export async function inflict(
  damage: DamageName,
  path: string,
  other: string | undefined,
  random: () => number,
): Promise<boolean> {
  const bytes = await readFile(path)
  const flip = async (from: number, to: number) => {
    if (bytes.length === 0) return false
    const at = Math.min(bytes.length - 1, from + Math.floor(random() * (to - from)))
    bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8))
    await writeFile(path, bytes)
    return true
  }
  const cut = async (length: number) => {
    if (length >= bytes.length) return false
    await truncate(path, Math.max(0, length))
    return true
  }
  switch (damage) {
    case 'flip at the head':
      return flip(0, Math.min(endBytes, bytes.length))
    case 'flip in the middle':
      return flip(Math.floor(bytes.length / 3), Math.ceil((bytes.length * 2) / 3))
    case 'flip at the tail':
      return flip(Math.max(0, bytes.length - endBytes), bytes.length)
    case 'cut to nothing':
      return cut(0)
    case 'cut in half':
      return cut(Math.floor(bytes.length / 2))
    case 'cut by a byte':
      return cut(bytes.length - 1)
    case 'remove':
      await rm(path)
      return true
    case 'replace by another copy': {
      if (other === undefined || (await readFile(other)).equals(bytes)) return false
      await copyFile(other, path)
      return true
    }
    case 'make unreadable':
      // Root may read every file. A directory in its place fails for root, too.
      await rm(path)
      await mkdir(path)
      return true
  }
}
