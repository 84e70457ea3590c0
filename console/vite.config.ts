import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/** Where control listens while the console is developed. */
const control = process.env['INLET_CONTROL_URL'] ?? 'http://127.0.0.1:8080'
const proxied = ['/v1', '/auth', '/openapi', '/errors', '/objects']

export default defineConfig({
  root: import.meta.dirname,
  // Beside the paths of screens, so that control serves files from one path.
  build: {
    outDir: 'dist',
    assetsDir: 'console/assets',
    target: 'es2023',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
    // The first screen needs one file: each further one costs the browser more than its bytes.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'start', tags: ['$initial'] }] } } },
  },
  server: {
    host: '127.0.0.1',
    // Control accepts calls of a session only from its own origin.
    proxy: Object.fromEntries(
      proxied.map((path) => [path, { target: control, changeOrigin: true, headers: { origin: control } }]),
    ),
  },
  plugins: [react(), withFonts(), compressed()],
})

/** Asks for the fonts of every screen with the page, so that no text changes its font in front of the reader. */
function withFonts(): Plugin {
  return {
    name: 'with-fonts',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler: (_html, { bundle = {} }) =>
        Object.keys(bundle)
          .filter((name) => /geist(-mono)?-latin-wght-normal-[^/]*\.woff2$/.test(name))
          .map((name) => ({
            tag: 'link',
            attrs: { rel: 'preload', href: `/${name}`, as: 'font', type: 'font/woff2', crossorigin: true },
            injectTo: 'head' as const,
          })),
    },
  }
}

/** Puts `.br` and `.gz` beside each text file, so that control compresses nothing while it serves. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    async writeBundle({ dir = '' }) {
      const names = await readdir(dir, { recursive: true })
      const texts = names.filter((name) => /\.(js|css|svg)$/.test(name))
      await Promise.all(
        texts.map(async (name) => {
          const path = join(dir, name)
          const bytes = await readFile(path)
          const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }
          await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, quality))
          await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }))
        }),
      )
    },
  }
}
