import { at, type Examples, ids, page } from './shared.ts'

const secret = { id: ids.secret, name: 'email_key', created_at: at, rotated_at: null, used_by: ['orders'] }
const value = 'mDrcQyQwZTI9jW0pCzS7Gm0XxD0YvYBQkTnB2uT3yGo='

export const secretsExamples: Examples = {
  createSecret: { request: { name: 'email_key' }, response: { ...secret, used_by: [], value } },
  listSecrets: { response: page(secret) },
  rotateSecret: {
    request: { value: 'bWFkZSBmb3IgdGhpcyBleGFtcGxl', encoding: 'base64' },
    response: { ...secret, rotated_at: at },
  },
}
