import { Keyring } from '#lib/keyring.ts'

/** The key of every test, so that several control processes share a database. */
export const secretKey = Buffer.alloc(32, 7).toString('base64')

export const keyring = new Keyring(secretKey, 'INLET_SECRET_KEY')
