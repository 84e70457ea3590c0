import { mkdir } from 'node:fs/promises'

/**
 * Creates a directory and its missing parents, which only the user can read: a backup has secrets and the data of senders. Returns
 * whether it was missing.
 */
export async function makePrivateDirectory(path: string): Promise<boolean> {
  return (await mkdir(path, { recursive: true, mode: 0o700 })) !== undefined
}
