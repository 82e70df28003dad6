import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/** A broker's plugin that writes each push of a client into a file of written.telemetry.directory. */
public class WrittenTelemetry implements MetricsReporter, ClientTelemetry {
    private final AtomicInteger pushes = new AtomicInteger();
    private Path directory;

    @Override
    public void configure(Map<String, ?> configs) {
        directory = Path.of((String) configs.get("written.telemetry.directory"));
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return (context, payload) -> {
            ByteBuffer data = payload.data().duplicate();
            byte[] bytes = new byte[data.remaining()];
            data.get(bytes);
            String text = String.join("\n",
                context.clientId(),
                payload.clientInstanceId().toString(),
                Boolean.toString(payload.isTerminating()),
                payload.contentType(),
                Base64.getEncoder().encodeToString(bytes));
            synchronized (pushes) {
                write(text);
            }
        };
    }

    private void write(String text) {
        try {
            Path made = Files.writeString(directory.resolve("making"), text);
            Files.move(made, directory.resolve(String.format("%06d.push", pushes.incrementAndGet())));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
    }

    @Override
    public void metricChange(KafkaMetric metric) {
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
    }

    @Override
    public void close() {
    }
}
